"""Work of many calls in a few of them counts; one call that was disturbed moves one end alone."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.evaluator.timing.test_case_timings import compared, times
from tilewright.evaluator.timing.concentrated_work import MIN_GAP, concentrated_work
from tilewright.records.codes import LabelName

FULL, SHORT = 5e-4, 1e-4
"""Seconds of a call that does its own work, and of one whose work another call has done."""


def one_of(many: int, calls: int = 96) -> list[float]:
    """Return calls of which one of `many` does what the others leave out."""
    long = SHORT + many * (FULL - SHORT)
    return [long if call % many == 0 else SHORT for call in range(calls)]


@pytest.mark.parametrize("many", [2, 3, 5, 8, 16, 32, 48])
@pytest.mark.parametrize("on_device", [False, True])
def test_work_of_many_calls_in_one_gains_nothing(many, on_device):
    given_times = times([FULL] * 96, one_of(many))
    given_times.on_device = on_device
    item = compared(given_times)

    assert item.speedup == pytest.approx(1.0, abs=0.12)
    assert item.speedup_low <= 1.02
    assert item.conclusion != "faster"
    assert item.labels == (LabelName.WORK_OF_OTHER_CALLS,)


def test_one_disturbed_call_lowers_the_lower_end_alone():
    quiet = compared(times([FULL] * 96, [FULL] * 96))
    item = compared(times([FULL] * 96, [FULL] * 95 + [60 * FULL]))

    assert (item.speedup, item.speedup_high) == (quiet.speedup, quiet.speedup_high)
    assert item.speedup_low == pytest.approx(quiet.speedup_low * 96 / 155, rel=0.01)


def test_long_calls_of_a_baseline_change_nothing():
    plain = compared(times([FULL] * 96, [FULL] * 96))
    item = compared(times(one_of(16), [SHORT] * 96))

    assert item.speedup == pytest.approx(1.0)
    assert item.speedup_low == pytest.approx(plain.speedup_low)
    assert item.labels == ()


SECONDS = st.lists(st.floats(1e-5, 1e-1), min_size=16, max_size=64)


@given(SECONDS, SECONDS)
def test_the_lower_end_is_at_most_the_quotient_of_the_means(theirs, ours):
    blocks = list(zip(theirs[::2], ours[::2], ours[1::2], theirs[1::2], strict=False))
    work = concentrated_work(blocks)
    means = [sum(block[i] + block[j] for block in blocks) for i, j in ((0, 3), (1, 2))]
    ratios = sorted(0.5 * math.log(a * d / (b * c)) for a, b, c, d in blocks)
    middle = len(ratios) // 2
    typical = (ratios[middle] + ratios[~middle]) / 2

    assert 0 < work.on_low <= work.on_estimate <= 1
    assert typical + math.log(work.on_low) <= math.log(means[0] / means[1]) + MIN_GAP + 1e-9
