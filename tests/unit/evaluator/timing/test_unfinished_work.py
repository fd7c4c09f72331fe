"""Readings of the same call on a device that agree, and readings that do not."""

from __future__ import annotations

import pytest

from tilewright.evaluator.timing.case_timings import CaseTimes, GpuReadings
from tilewright.evaluator.timing.unfinished_work import unfinished_work_s


def readings(
    call_us: float = 100.0,
    *,
    waited_us: float = 150.0,
    queued_us: float = 60.0,
    batched_us: float | None = 90.0,
    early: int = 0,
    baseline_waited_us: float = 150.0,
) -> CaseTimes:
    names = ("eager", "candidate")
    gpu = GpuReadings(
        call_latency_s={"eager": [baseline_waited_us * 1e-6], "candidate": [waited_us * 1e-6]},
        queued_s={"eager": [60e-6], "candidate": [queued_us * 1e-6]},
        early=early,
    )
    if batched_us is not None:
        gpu.back_to_back_s = {"eager": 9e-5, "candidate": batched_us * 1e-6}
    totals = {"eager": [1e-4], "candidate": [call_us * 1e-6] * 2}
    return CaseTimes("one", total_s={name: totals[name] for name in names}, gpu=gpu)


@pytest.mark.parametrize(
    "times",
    [
        readings(),
        readings(10.0, batched_us=8.0),
        # Many launches: the host needs most of the time.
        readings(50.0, waited_us=4000.0, queued_us=3900.0),
        # The second level cache is written back between calls back to back.
        readings(10.0, batched_us=30.0),
        # On this machine every caller waits long.
        readings(waited_us=2000.0, baseline_waited_us=2000.0),
        # It waits for the device itself, so that its launches are in its time.
        readings(waited_us=8000.0, early=2),
        CaseTimes("one", total_s={"eager": [1e-4], "candidate": [1e-4]}),
    ],
)
def test_readings_that_agree_show_no_work_after_the_end(times):
    assert unfinished_work_s(times) == 0


def test_a_caller_that_waits_longer_shows_work_after_the_end():
    assert unfinished_work_s(readings(1.3, waited_us=572.0, batched_us=None)) > 3e-4


def test_calls_back_to_back_that_take_longer_show_work_after_the_end():
    assert unfinished_work_s(readings(1.3, waited_us=100.0, batched_us=135.0)) > 1e-4
