"""Rates of a run: evaluations per second, and the share of each device's time in timing."""

from __future__ import annotations

import pytest

from tilewright.loop.throughput import BEGUN, ENDED, ThroughputMeter


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def meter(clock) -> ThroughputMeter:
    return ThroughputMeter(clock)


def tell(meter: ThroughputMeter, number: int, *stages: str, device: str = "cuda:0") -> None:
    for stage in stages:
        meter("stage", {"stage": stage, "device": device, "number": number})


def begin(meter: ThroughputMeter, *numbers: int) -> None:
    for number in numbers:
        meter(BEGUN, {"number": number})


def test_only_the_stage_timing_counts_and_each_device_by_itself(meter, clock):
    begin(meter, 0, 1)
    tell(meter, 0, "build")
    tell(meter, 1, "build", device="cuda:1")
    clock.now += 2.0
    tell(meter, 0, "timing")
    clock.now += 3.0
    tell(meter, 0, "cleanup")
    clock.now += 5.0
    meter(ENDED, {"number": 0, "judged": True})
    found = meter.read()
    assert (found.wall_s, found.evaluations, found.per_s) == (10.0, 1, 0.1)
    assert found.timing_shares == {"cuda:0": 0.3, "cuda:1": 0.0}


def test_moments_in_which_several_evaluations_are_timed_count_once(meter, clock):
    begin(meter, 0, 1)
    tell(meter, 0, "timing")
    clock.now += 1.0
    tell(meter, 1, "timing")
    clock.now += 1.0
    tell(meter, 0, "cleanup")
    clock.now += 1.0
    tell(meter, 1, "cleanup")
    clock.now += 1.0
    assert meter.read().timing_s == {"cuda:0": 3.0}


def test_an_evaluation_that_goes_on_counts_until_now(meter, clock):
    begin(meter, 0)
    tell(meter, 0, "timing")
    clock.now += 4.0
    assert meter.read().timing_shares == {"cuda:0": 1.0}
    assert meter.read().per_s is None


def test_a_repeated_evaluation_counts_all_its_timing_and_is_one(meter, clock):
    begin(meter, 0)
    for _ in range(2):
        tell(meter, 0, "build", "timing")
        clock.now += 2.0
        tell(meter, 0, "cleanup")
    meter(ENDED, {"number": 0, "judged": True})
    assert (meter.read().evaluations, meter.read().timing_s) == (1, {"cuda:0": 4.0})


def test_an_evaluation_without_a_report_ends_its_timing_and_is_not_counted(meter, clock):
    begin(meter, 0)
    tell(meter, 0, "timing")
    clock.now += 1.0
    meter(ENDED, {"number": 0, "judged": False})
    clock.now += 1.0
    found = meter.read()
    assert (found.evaluations, found.per_s, found.timing_s) == (0, None, {"cuda:0": 1.0})


def test_stages_after_the_end_or_without_a_device_change_nothing(meter, clock):
    begin(meter, 0, 1)
    meter(ENDED, {"number": 0, "judged": True})
    tell(meter, 0, "timing")
    meter("stage", {"stage": "timing", "number": 1})
    meter("timing", {"case": "a", "number": 1})
    clock.now += 1.0
    assert meter.read().timing_s == {}


def test_at_the_begin_no_rate_is_known(meter):
    found = meter.read()
    assert (found.per_s, found.timing_shares) == (None, {})
