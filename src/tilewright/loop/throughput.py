"""How fast a run evaluates, and which share of the time each of its devices times candidates."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tilewright.records.codes import Stage

BEGUN, ENDED = "evaluation_begun", "evaluation_ended"
"""The events before the first and after the last event of an evaluation.

`number` is the same in all events of one evaluation, and `judged` tells whether it has a report.
"""


@dataclass(frozen=True)
class Throughput:
    """The work of one invocation until now."""

    wall_s: float
    """Seconds since its begin."""
    evaluations: int
    """Those with a report. Reports of an earlier invocation do not count."""
    timing_s: dict[str, float]
    """Seconds in which evaluations of a device were in the stage `timing`, by device."""

    @property
    def per_s(self) -> float | None:
        """Return the evaluations per second; `None`: there is none yet."""
        return self.evaluations / self.wall_s if self.evaluations and self.wall_s else None

    @property
    def timing_shares(self) -> dict[str, float]:
        """Return the share of the wall time in the stage `timing`, by device."""
        return {name: took / self.wall_s for name, took in self.timing_s.items() if self.wall_s}


class ThroughputMeter:
    """Follows the events of evaluations. Lifetime: one invocation. Safe to use from any thread.

    Several evaluations may be in the stage `timing` of one device; each moment counts once.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._begin = clock, clock()
        self._lock = threading.Lock()
        self._evaluations = 0
        self._running: dict[int, str] = {}
        """The device on which each running evaluation is timed now; empty: on none."""
        self._since: dict[str, float] = {}
        """When the present time in the stage began, by device."""
        self._timing_s: dict[str, float] = {}

    def __call__(self, event: str, fields: dict[str, Any]) -> None:
        """Take in an event of an evaluation."""
        with self._lock:
            if event == BEGUN:
                self._running[fields["number"]] = ""
            elif event == ENDED:
                self._move(fields["number"], "")
                del self._running[fields["number"]]
                self._evaluations += fields["judged"]
            # A server of another version names no device, and may tell a stage after the end.
            elif event == "stage" and "device" in fields and fields["number"] in self._running:
                device = fields["device"]
                self._timing_s.setdefault(device, 0.0)
                self._move(fields["number"], device if fields["stage"] == Stage.TIMING else "")

    def read(self) -> Throughput:
        """Return the work until now, with the evaluations that are timed at this moment."""
        with self._lock:
            now = self._clock()
            timing_s = {
                name: took + (now - self._since[name] if name in self._since else 0.0)
                for name, took in self._timing_s.items()
            }
        return Throughput(now - self._begin, self._evaluations, dict(sorted(timing_s.items())))

    def _move(self, number: int, device: str) -> None:
        """Let an evaluation be timed on a device from now on, or on none."""
        before, now = self._running[number], self._clock()
        self._running[number] = device
        timed = self._running.values()
        if before and before not in timed:
            self._timing_s[before] += now - self._since.pop(before)
        if device:
            self._since.setdefault(device, now)
