"""Who may start processes: while a side is timed, nobody.

CPU time of a process that ends while its parent ignores SIGCHLD is added to nobody's (wait(2)),
and that of one that is waited for is told in steps of 10 ms. So the work of short-lived processes
between two calls cannot be charged to anybody, and there are none. The contestant hands us the
listener of a seccomp filter before its candidate is loaded: it is asked of us whether a process may
be started, and cannot be got around, since a filter is inherited and never taken off.
"""

from __future__ import annotations

import contextlib
import os
import select
import threading

from tilewright.wire.seccomp_notify import answer

__all__ = ["SpawnGuard"]


class SpawnGuard:
    """Answers each attempt of a side to start a process. Lifetime: the side's process."""

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
        """Answer no more; who still asks is told that there is no such call."""
        os.eventfd_write(self._end, 1)
        self._thread.join()
        os.close(self._listener)
        os.close(self._end)
