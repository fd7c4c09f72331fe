"""CPU time that a runner uses outside its timed calls, from readings of its CPU clock."""

from __future__ import annotations

from dataclasses import dataclass

RELEASE_SLACK_S = 3e-4
"""Seconds that a resumed runner may take until it waits for its release. A longer time counts as
part of the call, because other threads of the runner may work in it."""


@dataclass(frozen=True)
class CpuReadings:
    """The supervisor's readings around one timed call.

    CPU readings are seconds of the runner's CPU clock; moments are on `time.perf_counter`.
    """

    before: float
    """CPU when the previous call had ended and the runner was stopped."""
    stopped: float
    """CPU when the runner was stopped after the call."""
    after: float
    """CPU just before the runner goes on."""
    released_at: float
    done_at: float
    stopped_at: float
    ready: float | None = None
    """CPU when the runner was ready for its release; `None`: it was not stopped there."""
    resumed_at: float | None = None
    """When it went on from there."""


def untimed_cpu_s(readings: CpuReadings, threads: int) -> float:
    """Return the CPU seconds outside the call since the end of the previous one.

    A runner of one thread cannot use more CPU time in a call than the call lasts. With several
    threads it can, so CPU time is counted between the moments in which the runner is stopped.
    """
    lasted = readings.done_at - readings.released_at
    if threads == 1 or readings.ready is None or readings.resumed_at is None:
        return readings.after - lasted - readings.before
    early = cpu_before_release_s(
        readings.stopped - readings.ready,
        readings.stopped_at - readings.released_at,
        readings.released_at - readings.resumed_at,
        threads,
    )
    return (
        readings.ready
        - readings.before
        + early
        + (readings.stopped_at - readings.done_at)
        + (readings.after - readings.stopped)
    )


def cpu_before_release_s(used_s: float, lasted_s: float, awake_s: float, threads: int) -> float:
    """Return the CPU seconds that several threads used between resumption and release.

    The CPU clock gives only the sum between two moments in which the runner is stopped (`used_s`).
    A call of `lasted_s` uses at most that time on each thread. In the `awake_s` before the release
    one thread waits in a loop.
    """
    return max(used_s - threads * lasted_s - awake_s, 0.0)
