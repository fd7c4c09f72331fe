"""A ratio that depends on the host gets an interval for the mean over hosts."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.evaluator.timing.test_case_timings import compared, times
from tilewright.evaluator.timing.case_timings import CaseTimes, LaunchGateMode
from tilewright.evaluator.timing.host_variation import HOST_SIGMA, host_half_widths, widened
from tilewright.scoring.intervals import Interval

CALLS = 40
WIDTH = pytest.approx(1.96 * HOST_SIGMA, rel=1e-3)


def timed(
    *, early: int = 0, waits: bool = False, on_device: bool = True, launching: bool = False
) -> CaseTimes:
    made = times([2e-3] * CALLS, [1e-3] * CALLS)
    made.on_device, made.gpu.early = on_device, early
    made.gpu.launch_gate = LaunchGateMode(1e-2, waits=waits, launching=launching)
    return made


def test_a_candidate_that_waits_has_a_lower_end_that_allows_for_other_hosts():
    assert host_half_widths(timed(early=CALLS)) == (WIDTH, 0.0)


def test_a_baseline_that_waits_widens_both_ends():
    assert host_half_widths(timed(waits=True)) == (WIDTH, WIDTH)


@pytest.mark.parametrize(
    "plain",
    [
        timed(),
        timed(early=CALLS, waits=True),
        timed(early=CALLS // 2),
        timed(early=CALLS, on_device=False),
        timed(early=CALLS, launching=True),
    ],
)
def test_if_none_or_both_wait_the_interval_stays(plain):
    assert host_half_widths(plain) == (0.0, 0.0)


@given(st.floats(0.1, 10), *[st.floats(0, 1)] * 4)
def test_errors_add_in_quadrature_and_only_widen(estimate, below, above, down, up):
    interval = Interval(estimate, estimate * math.exp(-below), estimate * math.exp(above))
    found = widened(interval, down, up)
    assert found.estimate == estimate
    assert math.log(estimate / found.low) == pytest.approx(math.hypot(below, down), abs=1e-9)
    assert math.log(found.high / estimate) == pytest.approx(math.hypot(above, up), abs=1e-9)


def test_the_comparison_uses_it():
    plain, waiting = compared(timed()), compared(timed(early=CALLS))
    assert waiting.speedup == plain.speedup
    assert waiting.speedup_low < plain.speedup_low
    assert waiting.speedup_high == plain.speedup_high
