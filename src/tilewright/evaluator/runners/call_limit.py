"""The time limit of a call on a CPU, without the time in which the runner could not run."""

from __future__ import annotations

import time
from typing import Protocol

STARVED_SHARE = 0.5
"""Share of a call's seconds. A runner that could run and used less CPU time waited for a core."""


class RunnableTree(Protocol):
    """The processes of a runner."""

    def cpu_s(self) -> float:
        """Return the CPU seconds that they have used."""

    def payload_is_runnable(self) -> bool:
        """Tell whether the first thread of the payload runs, or would run if it had a core."""


class CallLimit:
    """Tells when a call has taken too long. Lifetime: the call.

    On a busy machine other processes may keep a core for seconds (docs/lab). A candidate that
    sleeps or computes is late at its limit. The limit of the whole evaluation holds in any case.
    """

    def __init__(self, tree: RunnableTree, seconds: float) -> None:
        self._tree = tree
        self._began_at, self._began_cpu_s = time.monotonic(), tree.cpu_s()
        self.at = self._began_at + seconds
        """Monotonic time of the limit, for a runner that has a core."""

    def is_over(self) -> bool:
        """Tell whether the call is late."""
        now = time.monotonic()
        return now > self.at and not self._waits_for_core(now)

    def _waits_for_core(self, now: float) -> bool:
        used_s = self._tree.cpu_s() - self._began_cpu_s
        is_starved = used_s < STARVED_SHARE * (now - self._began_at)
        return is_starved and self._tree.payload_is_runnable()
