"""The recent activity of a server for its dashboard: running tasks, verdicts by minute, failures.

It lies in memory and begins anew with the server. Its size is limited.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tilewright.scoring import bootstrap
from tilewright.serve.prometheus_metrics import STAGES_ON_DEVICE

MINUTES = 60
"""Minutes of which the numbers are kept: a longer time belongs into a metrics server."""
MAX_FAILURES, MAX_NAMES, MAX_WAITS = 20, 10_000, 500
"""Internal errors, names and speed-ups by task, and waits that are kept."""
Value = TypeVar("Value")


@dataclass
class Minute:
    """The numbers of one minute. `at` is its start, in seconds since 1970."""

    at: int
    verdicts: Counter[str] = field(default_factory=Counter)
    internal_errors: int = 0
    busy_s: Counter[str] = field(default_factory=Counter)
    """Seconds in which evaluations held a device, by its name."""


@dataclass
class Running:
    """A task that is being evaluated; the times are seconds since 1970."""

    key: str
    started_at: float
    stage: str = ""
    stage_at: float = 0.0


@dataclass(frozen=True)
class Failure:
    """An attempt that ended with an internal error."""

    at: float
    key: str
    message: str


@dataclass(frozen=True)
class Speedup:
    """A speed-up with the ends of its interval; `None`: not measured."""

    speedup: float | None = None
    speedup_low: float | None = None
    speedup_high: float | None = None


@dataclass(frozen=True)
class Waits:
    """Seconds from acceptance to the beginning, of so many tasks."""

    tasks: int
    median_s: float
    p95_s: float


def _keep(kept: OrderedDict[str, Value], key: str, value: Value, most: int) -> None:
    """Keep a value as the newest one, and drop the oldest beyond `most`."""
    kept[key] = value
    kept.move_to_end(key)
    while len(kept) > most:
        kept.popitem(last=False)


class Activity:
    """The recent activity of one server. Thread-safe. Lifetime: the server."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._minutes: deque[Minute] = deque(maxlen=MINUTES)
        self._running: dict[str, Running] = {}
        self._failures: deque[Failure] = deque(maxlen=MAX_FAILURES)
        self._problems: OrderedDict[str, tuple[str, str]] = OrderedDict()
        self._waits: OrderedDict[str, float] = OrderedDict()
        self._speedups: OrderedDict[str, Speedup] = OrderedDict()
        self.version = 0
        """Changes whenever the activity does."""

    def tell(self, key: str, event: str, fields: dict[str, Any]) -> None:
        """Note an event of a task."""
        now = self._clock()
        with self._lock:
            match event:
                case "running":
                    self._running[key] = Running(key, now)
                    # A task that begins once more counts once, with its last wait.
                    _keep(self._waits, key, fields["waited_s"], MAX_WAITS)
                case "stage" if key in self._running:
                    self._running[key].stage, self._running[key].stage_at = fields["stage"], now
                case "judged":
                    found = Speedup(fields["speedup"], fields["low"], fields["high"])
                    _keep(self._speedups, key, found, MAX_NAMES)
                    minute = self._minute(now)
                    minute.verdicts[fields["verdict"]] += 1
                    for name, seconds in fields["stages"]:
                        if name in STAGES_ON_DEVICE:
                            minute.busy_s[fields["device"]] += seconds
                case "internal_error":
                    self._minute(now).internal_errors += 1
                    self._failures.appendleft(Failure(now, key, fields["message"]))
                case _:
                    return
            self.version += 1

    def name(self, key: str, problem: str, title: str = "") -> None:
        """Note the problem of a task, and its title."""
        with self._lock:
            _keep(self._problems, key, (problem, title), MAX_NAMES)
            self.version += 1

    def finished(self, key: str) -> None:
        """Note that a task is no longer evaluated."""
        with self._lock:
            self._running.pop(key, None)
            self.version += 1

    def changed(self) -> None:
        """Note that something else has changed, such as the queue."""
        with self._lock:
            self.version += 1

    def problem(self, key: str) -> tuple[str, str]:
        """Return the problem of a task and its title; empty if this server has not accepted it."""
        with self._lock:
            return self._problems.get(key, ("", ""))

    def speedup(self, key: str) -> Speedup:
        """Return the speed-up of a task, unknown if this server has not judged it."""
        with self._lock:
            return self._speedups.get(key, Speedup())

    def running(self) -> list[Running]:
        """Return the tasks that are being evaluated, the oldest first."""
        with self._lock:
            return sorted(self._running.values(), key=lambda item: item.started_at)

    def failures(self) -> list[Failure]:
        """Return the last internal errors, the newest first."""
        with self._lock:
            return list(self._failures)

    def minutes(self) -> list[Minute]:
        """Return the numbers of the last minutes, the oldest first; idle ones are left out."""
        with self._lock:
            first = self._clock() - 60 * MINUTES
            return [
                Minute(item.at, item.verdicts.copy(), item.internal_errors, item.busy_s.copy())
                for item in self._minutes
                if item.at > first
            ]

    def waits(self) -> Waits | None:
        """Return what the tasks that began last have waited; `None`: no task has begun."""
        with self._lock:
            waits = list(self._waits.values())
        if not waits:
            return None
        return Waits(len(waits), bootstrap.median(waits), bootstrap.quantile(waits, 0.95))

    def _minute(self, now: float) -> Minute:
        at = int(now // 60 * 60)
        if not self._minutes or self._minutes[-1].at != at:
            self._minutes.append(Minute(at))
        return self._minutes[-1]
