"""The time limit of a call on a CPU, for the time in which the runner could run."""

from __future__ import annotations

import time
from typing import Protocol

MOST = 3.0
"""Times its limit that a call may take on a machine whose cores others keep."""


class RunnableTree(Protocol):
    """The processes of a runner."""

    def cpu_s(self) -> float:
        """Return the CPU seconds that they have used."""

    def payload_is_runnable(self) -> bool:
        """Tell whether a thread of the payload runs, or would run if it had a core."""


class CallLimit:
    """Tells when a call has taken too long. Lifetime: the call.

    On a busy machine other processes may keep a core for seconds (docs/lab). A runner that could
    run all the time has its limit in seconds of CPU time, and `MOST` times as many by the clock. A
    runner that sleeps at its limit is late.
    """

    def __init__(self, tree: RunnableTree, seconds: float) -> None:
        self._tree, self._seconds = tree, seconds
        self._began_at, self._began_cpu_s = time.monotonic(), tree.cpu_s()
        self.at = self._began_at + seconds
        """Monotonic time of the limit, for a runner that has a core."""

    def is_over(self) -> bool:
        """Tell whether the call is late."""
        now = time.monotonic()
        if now <= self.at:
            return False
        last = now > self._began_at + MOST * self._seconds
        return last or self._has_run() or not self._tree.payload_is_runnable()

    def _has_run(self) -> bool:
        return self._tree.cpu_s() - self._began_cpu_s >= self._seconds
