"""A ratio that depends on the host gets an interval that other hosts agree with."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.evaluator.timing.test_case_timings import compared, times
from tilewright.evaluator.timing.case_timings import CaseTimes, LaunchGateMode
from tilewright.evaluator.timing.host_variation import HOST_SIGMA, on_other_hosts
from tilewright.scoring.intervals import Interval

CALLS = 40


def timed(*, early: int = 0, waits: bool = False, on_device: bool = True) -> CaseTimes:
    made = times([2e-3] * CALLS, [1e-3] * CALLS)
    made.on_device, made.gpu.early = on_device, early
    made.gpu.launch_gate = LaunchGateMode(1e-2, waits=waits)
    return made


@pytest.mark.parametrize(("early", "waits"), [(CALLS, False), (0, True)])
def test_if_one_implementation_waits_both_ends_allow_for_another_host(early, waits):
    found = on_other_hosts(Interval(2.0, 2.0, 2.0), timed(early=early, waits=waits))
    assert found.estimate == 2.0
    assert math.log(found.high / found.low) == pytest.approx(2 * 1.96 * HOST_SIGMA, rel=1e-3)


@pytest.mark.parametrize(
    "plain",
    [timed(), timed(early=CALLS, waits=True), timed(early=CALLS // 2), timed(on_device=False)],
)
def test_if_none_or_both_wait_the_interval_stays(plain):
    given_interval = Interval(2.0, 1.9, 2.2)
    assert on_other_hosts(given_interval, plain) == given_interval


@given(st.floats(0.1, 10), st.floats(0, 1), st.floats(0, 1))
def test_it_only_widens_and_ends_add_in_quadrature(estimate, below, above):
    interval = Interval(estimate, estimate * math.exp(-below), estimate * math.exp(above))
    found = on_other_hosts(interval, timed(early=CALLS))
    assert found.low <= interval.low * (1 + 1e-12)
    assert found.high >= interval.high * (1 - 1e-12)
    assert math.log(estimate / found.low) <= below + 1.96 * HOST_SIGMA + 1e-9


def test_the_comparison_uses_it():
    plain, waiting = compared(timed()), compared(timed(early=CALLS))
    assert waiting.speedup == plain.speedup
    assert waiting.speedup_low < plain.speedup_low
    assert waiting.speedup_high > plain.speedup_high
