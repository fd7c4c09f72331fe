"""The process-creation guard: a runner starts no process while it is timed.

The kernel adds the CPU time of ended children to no process if their parent ignores SIGCHLD
(wait(2)), and else in steps of 10 ms. So the supervisor cannot charge short-lived processes to a
runner, and permits none. The runner hands it the listener of a seccomp filter before it loads its
candidate. A candidate cannot get around the filter, which is inherited and never removed.
"""

from __future__ import annotations

import contextlib
import os
import select
import threading

from tilewright.wire.seccomp_notify import answer


class SpawnGuard:
    """Answers each attempt of a runner to start a process. Lifetime: the runner's process."""

    def __init__(self, listener: int) -> None:
        self.closed = False
        """Whether an attempt is refused."""
        self._listener = listener
        self._end = os.eventfd(0, os.EFD_CLOEXEC)
        self._thread = threading.Thread(target=self._keep, name="spawn guard", daemon=True)
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
