"""The process-creation guard: a runner starts no process while it is timed.

If a parent ignores SIGCHLD, the kernel adds the CPU time of its ended children to no process
(wait(2)). If the parent waits for a child, the kernel reports that child's CPU time in steps of
10 ms. So the supervisor cannot charge the work of short-lived processes between two calls to a
runner, and it permits none. The runner hands the supervisor the listener of a seccomp filter before
it loads its candidate. The kernel then asks the supervisor whether a process may be started. A
candidate cannot get around the filter, since a filter is inherited and never removed.
"""

from __future__ import annotations

import contextlib
import os
import select
import threading

from tilewright.wire.seccomp_notify import answer

__all__ = ["SpawnGuard"]


class SpawnGuard:
    """Answers each attempt of a runner to start a process. Lifetime: the runner's process."""

    def __init__(self, listener: int) -> None:
        self.closed = False
        """Whether an attempt is refused."""
        self._listener = listener
        self._end = os.eventfd(0, os.EFD_CLOEXEC)
        self._thread = threading.Thread(target=self._keep, name="door", daemon=True)
        self._thread.start()

    def _keep(self) -> None:
        poll = select.poll()
        poll.register(self._listener, select.POLLIN)
        poll.register(self._end, select.POLLIN)
        while True:
            for fd, event in poll.poll():
                if fd == self._end:
                    return
                if event & select.POLLIN:
                    # Who asked may have been killed since.
                    with contextlib.suppress(OSError):
                        answer(self._listener, lambda: self.closed)
                else:
                    # Everybody whom the filter is for has ended.
                    poll.unregister(fd)

    def close(self) -> None:
        """Answer no more; a later attempt fails as if there were no such system call."""
        os.eventfd_write(self._end, 1)
        self._thread.join()
        os.close(self._listener)
        os.close(self._end)
