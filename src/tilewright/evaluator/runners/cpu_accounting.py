"""The time of a call on a CPU, from the supervisor's readings of two clocks."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.evaluator.runners.messages import Result

MAX_EMPTY_CALL_S = 5e-6
"""Most seconds that a call is credited with for what every call costs: to go on after a stop, and
to be stopped. A candidate could use a larger credit for its own work."""
MIN_CALL_S = 1e-7
"""Fewest seconds that a call is reported to take: the clocks resolve no less."""
ASLEEP_S = 5e-5
"""Seconds of a call in which a runner may sleep, and which do not count: it wakes up, and it waits
to be stopped."""


@dataclass(frozen=True)
class CallReadings:
    """The supervisor's readings of one call, from the moment in which its inputs can be read."""

    cpu_s: float
    """CPU seconds of the runner's processes until the judge had read their outputs."""
    late_cpu_s: float
    """The part of it after they had been stopped: zero, unless somebody woke them."""
    waited_s: float
    """Seconds in which its first thread or the supervisor waited for a core."""
    done_s: float
    """Seconds until the runner reported completion."""
    stopped_s: float
    """Seconds until its processes were stopped."""


@dataclass(frozen=True)
class CallTiming:
    """One timed call by the supervisor's clock."""

    total_s: float
    """Seconds from the moment in which the inputs can be read until no output can change."""
    untimed_cpu_s: float
    """CPU seconds that the runner used between its previous call and that moment."""
    result: Result


def call_s(readings: CallReadings, empty_s: float, threads: int) -> float:
    """Return the seconds of a call, less those of an empty one (`empty_s`, limited).

    A runner of one thread is charged for its CPU time. That clock is exact once the runner is
    stopped, and it stands still while another process has the core. Time in which the runner
    sleeps counts beyond `ASLEEP_S`. With several threads the call lasts until all of them are
    stopped.
    """
    credit = min(empty_s, MAX_EMPTY_CALL_S)
    if threads > 1:
        return max(readings.stopped_s + readings.late_cpu_s - credit, MIN_CALL_S)
    asleep_s = readings.done_s - readings.cpu_s - readings.waited_s
    return max(readings.cpu_s + max(asleep_s - ASLEEP_S, 0.0) - credit, MIN_CALL_S)
