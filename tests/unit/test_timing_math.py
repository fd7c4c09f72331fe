"""From timed calls to a comparison: what counts as a side's time, and what a ratio is made of."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.evaluator.timing import FLOOR_S, CaseTimes, compare
from tilewright.scoring import statistics

COPY_S = 1e-4


def times(
    eager: list[float], candidate: list[float], copies: list[float] | None = None, **more: Any
) -> CaseTimes:
    """Return a timed case; `eager` and `candidate` are calls in seconds, without their copy."""
    sides = {"eager": eager, **more, "candidate": candidate}
    usual = {name: [COPY_S] * len(calls) for name, calls in sides.items()}
    if copies is not None:
        usual["candidate"] = copies
    return CaseTimes(
        "case",
        totals={name: [call + COPY_S for call in calls] for name, calls in sides.items()},
        copies=usual,
        blocks=len(eager) // 2,
    )


def compared(given_times: CaseTimes, baseline: str = "eager", **changes: Any) -> Any:
    return compare(given_times, baseline, 0.0, (), **{"official": False, **changes})


def test_a_speed_up_is_the_ratio_of_calls_without_their_copy():
    item = compared(times([2e-3] * 40, [1e-3] * 40))

    assert item.speedup == pytest.approx(2.0)
    assert item.reference.median_us == pytest.approx(2000.0)
    assert item.candidate.median_us == pytest.approx(1000.0)
    assert (item.blocks, item.candidate.samples, item.decision) == (20, 40, "faster")
    assert (item.case, item.baseline) == ("case", "eager")


def test_a_row_is_reference_candidate_candidate_reference():
    item = compared(times([4e-3, 5e-3, 6e-3, 7e-3], [1e-3, 2e-3, 3e-3, 4e-3]))

    assert item.raw_us == ((4000.0, 1000.0, 2000.0, 5000.0), (6000.0, 3000.0, 4000.0, 7000.0))


def test_each_baseline_has_a_comparison_of_its_own():
    given_times = times([2e-3] * 8, [1e-3] * 8, compile=[5e-4] * 8)

    assert compared(given_times).speedup == pytest.approx(2.0)
    assert compared(given_times, "compile").speedup == pytest.approx(0.5)
    assert compared(given_times, "compile").decision == "slower"


def test_the_ratio_is_the_median_of_the_blocks():
    calls = [1e-3] * 38 + [1.0, 1.0]

    assert compared(times([2e-3] * 40, calls)).speedup == pytest.approx(2.0)


def test_published_rules_divide_means_and_have_no_interval():
    given_times = times([2e-3, 4e-3], [1e-3, 1e-3])
    item = compared(given_times, official=True)

    assert item.speedup == pytest.approx(3.0)
    assert (item.speedup_low, item.speedup_high, item.decision) == (None, None, "no interval")


def test_a_call_shorter_than_can_be_told_has_the_floor():
    item = compared(times([2e-3] * 8, [-COPY_S] * 8, copies=[COPY_S] * 8))

    assert item.candidate.median_us == pytest.approx(FLOOR_S * 1e6)


def test_labels_travel_with_the_comparison():
    item = compare(times([1e-3] * 8, [1e-3] * 8), "eager", 0.0, ("short",), official=False)

    assert item.labels == ("short",)


def test_work_in_every_copy_is_work():
    # It says "done" after 0.1 ms and computes for another 0.9 ms while its outputs are copied.
    item = compared(times([1e-3] * 40, [1e-3] * 40, copies=[COPY_S + 9e-4] * 40))

    assert item.speedup == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize("share", [2, 3, 4, 10])
def test_work_in_some_copies_is_work_too(share):
    copies = [COPY_S + (9e-4 if call % share == 0 else 0.0) for call in range(40)]
    item = compared(times([1e-3] * 40, [1e-3] * 40, copies=copies))

    assert item.speedup == pytest.approx(1.0, abs=0.02)


CALLS = st.lists(st.floats(1e-5, 1.0), min_size=8, max_size=24).filter(lambda c: len(c) % 2 == 0)


@given(CALLS, st.floats(0.1, 10.0), st.floats(0.0, 0.1))
def test_a_constant_factor_is_found_exactly(calls, factor, sigma):
    given_times = times(calls, [call / factor for call in calls])
    item = compare(given_times, "eager", sigma, (), official=False)

    assert item.speedup == pytest.approx(factor, rel=1e-6)
    half = statistics.combine(0.0, 1.959964 * sigma)
    assert item.speedup_low == pytest.approx(factor * math.exp(-half), rel=1e-4)
    assert item.speedup_high == pytest.approx(factor * math.exp(half), rel=1e-4)
    assert item.speedup_low <= item.speedup <= item.speedup_high


@given(CALLS)
def test_swapping_the_sides_inverts_the_ratio(calls):
    other = calls[::-1]
    forth, back = compared(times(calls, other)), compared(times(other, calls))

    assert forth.speedup == pytest.approx(1 / back.speedup, rel=1e-6)
    assert forth.speedup_low == pytest.approx(1 / back.speedup_high, rel=1e-6)
