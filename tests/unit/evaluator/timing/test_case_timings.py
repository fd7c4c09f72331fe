"""From timed calls to a comparison: the charged time of a runner, and the rows of a ratio."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.evaluator.timing.case_timings import (
    CallSize,
    CaseTimes,
    charged_times,
    is_short,
    undetectable_work_s,
    untimed_cpu_excess_s,
)
from tilewright.evaluator.timing.speedup import compare_official, compare_strict
from tilewright.scoring import bootstrap, intervals

BESIDE_S = 1e-4
"""CPU seconds that the harness itself uses in a runner between two calls."""
HIDEABLE_S = 1e-5 + 0.05 * BESIDE_S
UNDETECTABLE_S = 5e-6
"""Seconds of work in a call that are never charged: the credit of an empty call."""


def times(
    eager: list[float], candidate: list[float], outside: list[float] | None = None, **more: Any
) -> CaseTimes:
    """Return a timed case of calls in seconds; `outside` is the candidate's work beside them."""
    runners = {"eager": eager, **more, "candidate": candidate}
    beside = {name: [BESIDE_S] * len(calls) for name, calls in runners.items()}
    if outside is not None:
        beside["candidate"] = outside
    return CaseTimes("case", total_s=runners, untimed_cpu_s=beside, blocks=len(eager) // 2)


def compared(given_times: CaseTimes, baseline: str = "eager", *, official: bool = False) -> Any:
    if official:
        return compare_official(given_times, baseline, ())
    return compare_strict(given_times, baseline, 0.0, ())


def test_a_speed_up_is_the_ratio_of_calls():
    item = compared(times([2e-3] * 40, [1e-3] * 40))

    assert item.speedup == pytest.approx(2.0)
    assert item.baseline_timing.median_us == pytest.approx(2000.0)
    assert item.candidate.median_us == pytest.approx(1000.0)
    assert (item.blocks, item.candidate.samples, item.conclusion) == (20, 40, "faster")
    assert (item.case, item.baseline) == ("case", "eager")


def test_a_raw_row_is_reference_candidate_candidate_reference():
    item = compared(times([4e-3, 5e-3, 6e-3, 7e-3], [1e-3, 2e-3, 3e-3, 4e-3]))

    assert item.raw_us == ((4000.0, 1000.0, 2000.0, 5000.0), (6000.0, 3000.0, 4000.0, 7000.0))


def test_each_baseline_has_its_own_comparison():
    given_times = times([2e-3] * 8, [1e-3] * 8, compile=[5e-4] * 8)

    assert compared(given_times).speedup == pytest.approx(2.0)
    assert compared(given_times, "compile").speedup == pytest.approx(0.5)
    assert compared(given_times, "compile").conclusion == "slower"


def test_the_ratio_is_the_median_of_the_blocks():
    calls = [1e-3] * 38 + [1.2e-3, 1.2e-3]

    assert compared(times([2e-3] * 40, calls)).speedup == pytest.approx(2.0)


def test_published_rules_divide_means_and_have_no_interval():
    given_times = times([2e-3, 4e-3], [1e-3, 1e-3])
    item = compared(given_times, official=True)

    assert item.speedup == pytest.approx(3.0)
    assert (item.speedup_low, item.speedup_high, item.conclusion) == (None, None, "no interval")


def test_published_rules_charge_nothing_to_the_mean():
    item = compared(times([2e-3] * 8, [1e-3] * 8, outside=[1.0] * 8), official=True)

    assert item.speedup == pytest.approx(2.0)


@pytest.mark.parametrize("official", [False, True])
def test_a_comparison_keeps_labels_bytes_and_shapes(official):
    given_times = times([1e-3] * 8, [1e-3] * 8)
    given_times.size = CallSize(12345, ((2, 3), ()))
    if official:
        item = compare_official(given_times, "eager", ("short_call",))
    else:
        item = compare_strict(given_times, "eager", 0.0, ("short_call",))

    assert (item.labels, item.moved_bytes) == (("short_call",), 12345)
    assert item.input_shapes == ((2, 3), ())


# Work beside a call -------------------------------------------------------------------------------


def test_untimed_cpu_of_every_call_is_charged():
    # It computes for 0.9 ms before it is released, and is done 0.1 ms after.
    item = compared(times([1e-3] * 40, [1e-4] * 40, outside=[BESIDE_S + 9e-4] * 40))

    assert item.speedup == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize("share", [2, 3, 4, 10])
def test_untimed_cpu_of_a_few_calls_is_charged(share):
    hides = [call % share == 0 for call in range(40)]
    calls = [1e-4 if hidden else 1e-3 for hidden in hides]
    outside = [BESIDE_S + (9e-4 if hidden else 0.0) for hidden in hides]
    item = compared(times([1e-3] * 40, calls, outside=outside))

    assert item.speedup == pytest.approx(1.0, abs=0.02)


def test_only_untimed_cpu_beyond_baseline_and_allowance_is_charged():
    limit = BESIDE_S + HIDEABLE_S
    outside = [-1.0, 0.0, BESIDE_S, limit, limit + 1e-6, limit + 1e-3, BESIDE_S, BESIDE_S]
    given_times = times([2e-3] * 8, [1e-3] * 8, outside=outside)

    charged = [0.0, 0.0, 0.0, 0.0, 1e-6, 1e-3, 0.0, 0.0]
    assert charged_times(given_times, "candidate") == pytest.approx(
        [1e-3 + more for more in charged]
    )
    assert charged_times(given_times, "eager") == given_times.total_s["eager"]


def test_forgiven_work_before_calls_lowers_the_lower_end():
    honest = times([2e-4] * 40, [1e-4] * 40)
    ahead = times([2e-4] * 40, [1e-4] * 40, outside=[BESIDE_S + 12e-6] * 40)

    assert charged_times(ahead, "candidate") == charged_times(honest, "candidate")
    assert undetectable_work_s(honest, "eager") == 0.0
    assert undetectable_work_s(ahead, "eager") == pytest.approx(12e-6)
    plain, lowered = (compare_strict(made, "eager", 0.01, ()) for made in (honest, ahead))
    assert lowered.speedup_low == pytest.approx(plain.speedup_low * 100 / 112)
    assert (lowered.speedup, lowered.speedup_high) == (plain.speedup, plain.speedup_high)


def test_more_than_is_forgiven_is_charged_and_not_allowed_for_again():
    ahead = times([2e-3] * 8, [1e-3] * 8, outside=[BESIDE_S + HIDEABLE_S + 1e-3] * 8)
    assert undetectable_work_s(ahead, "eager") == pytest.approx(HIDEABLE_S)


def test_a_baseline_is_charged_like_the_candidate():
    given_times = times([2e-3] * 8, [1e-3] * 8)
    given_times.untimed_cpu_s["eager"][3] += 1e-3

    charged = [0.0] * 3 + [1e-3 - HIDEABLE_S] + [0.0] * 4
    assert charged_times(given_times, "eager") == pytest.approx([2e-3 + more for more in charged])


def test_the_usual_untimed_cpu_is_the_least_of_the_baselines():
    given_times = times([2e-3] * 8, [1e-3] * 8, outside=[0.0] * 8, compile=[2e-3] * 8)
    given_times.untimed_cpu_s["eager"] = [3e-3] * 8

    assert charged_times(given_times, "eager") == pytest.approx(
        [2e-3 + 3e-3 - BESIDE_S - HIDEABLE_S] * 8
    )


def test_the_order_of_the_runners_changes_no_charge():
    # Under the published rules the candidate is timed first.
    given_times = times([2e-3] * 8, [1e-3] * 8, outside=[5e-3] * 8)
    in_order = charged_times(given_times, "candidate")
    given_times.untimed_cpu_s = dict(reversed(given_times.untimed_cpu_s.items()))

    assert charged_times(given_times, "candidate") == in_order
    assert in_order[0] > 5e-3


def test_a_waiting_baseline_makes_no_charge_negative():
    # Less CPU than the call was long, so that its share beside the calls comes out negative.
    given_times = times([2e-3] * 8, [1e-3] * 8, outside=[0.0] * 8)
    given_times.untimed_cpu_s["eager"] = [-1e-3] * 8

    assert charged_times(given_times, "candidate") == pytest.approx([1e-3] * 8)


def test_calls_in_which_a_baseline_waited_do_not_set_the_usual_amount():
    # On a busy machine its longer calls wait more often than the candidate's; both do the same.
    given_times = times([2e-3] * 8, [1e-3] * 8, outside=[-1e-3] + [1.2e-3] * 7)
    given_times.untimed_cpu_s["eager"] = [-1e-3] * 5 + [1.2e-3] * 3

    assert untimed_cpu_excess_s(given_times) == 0
    assert charged_times(given_times, "candidate") == given_times.total_s["candidate"]


def test_without_a_usable_baseline_call_all_is_charged_and_nothing_is_found():
    given_times = times([2e-2] * 8, [1e-3] * 8, outside=[1.2e-3] * 8)
    given_times.untimed_cpu_s["eager"] = [-1e-3] * 7 + [0.0]

    assert untimed_cpu_excess_s(given_times) == 0
    assert charged_times(given_times, "candidate") == pytest.approx([2.2e-3 - 1e-5] * 8)


def test_a_second_baseline_sets_the_usual_amount_where_the_first_waits():
    given_times = times([2e-3] * 8, [1e-3] * 8, outside=[1.2e-3] * 8, compile=[2e-3] * 8)
    given_times.untimed_cpu_s["eager"] = [-1e-3] * 8

    assert untimed_cpu_excess_s(given_times) == pytest.approx(1.2e-3 - BESIDE_S)


# Short calls --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("call_s", "short"), [(0.99, True), (1.01, False)])
def test_a_call_is_short_when_undetectable_work_is_five_percent_of_it(call_s, short):
    length = call_s * UNDETECTABLE_S / 0.05

    assert is_short(times([length] * 8, [1e-3] * 8), "eager") is short
    # How long the candidate's own calls are does not matter: it would choose.
    assert is_short(times([length] * 8, [1e-6] * 8), "eager") is short


def test_a_small_lead_in_short_calls_is_no_lead():
    item = compared(times([3e-5] * 8, [2.5e-5] * 8))

    assert item.speedup == pytest.approx(1.2)
    assert item.speedup_low == pytest.approx(3e-5 / (2.5e-5 + UNDETECTABLE_S))
    assert item.speedup_high == pytest.approx(1.2)
    assert item.conclusion == "no measurable difference"
    assert compared(times([3e-3] * 8, [2.5e-3] * 8)).conclusion == "faster"


def test_undetectable_work_makes_no_candidate_slower():
    item = compared(times([2.5e-5] * 8, [3e-5] * 8))

    assert item.conclusion == "slower"
    assert item.speedup_high == pytest.approx(2.5 / 3)


def calls_between(low_s: float, high_s: float) -> st.SearchStrategy[list[float]]:
    """Return lists of calls, two a block."""
    calls = st.lists(st.floats(low_s, high_s), min_size=8, max_size=24)
    return calls.filter(lambda made: len(made) % 2 == 0)


@given(calls_between(1e-3, 1.0), st.floats(0.1, 10.0), st.floats(0.0, 0.1))
def test_a_constant_factor_is_found_exactly(calls, factor, sigma):
    given_times = times(calls, [call / factor for call in calls])
    item = compare_strict(given_times, "eager", sigma, ())

    assert item.speedup == pytest.approx(factor, rel=1e-6)
    half = intervals.combine(0.0, 1.959964 * sigma)
    assert item.speedup_low == pytest.approx(factor * math.exp(-half), rel=1e-4)
    assert item.speedup_high == pytest.approx(factor * math.exp(half), rel=1e-4)
    assert item.speedup_low <= item.speedup <= item.speedup_high


@given(calls_between(1e-6, 9e-5), st.floats(0.1, 10.0), st.floats(0.0, 0.1))
def test_for_short_calls_only_the_lower_end_allows_for_undetectable_work(calls, factor, sigma):
    ours = [call / factor for call in calls]
    item = compare_strict(times(calls, ours), "eager", sigma, ())

    spread = math.exp(1.959964 * sigma)
    allowed = bootstrap.median(ours) / (bootstrap.median(ours) + UNDETECTABLE_S)
    assert item.speedup == pytest.approx(factor, rel=1e-6)
    assert item.speedup_low == pytest.approx(allowed * factor / spread, rel=1e-4)
    assert item.speedup_high == pytest.approx(factor * spread, rel=1e-4)


@given(calls_between(1e-3, 1.0))
def test_swapping_baseline_and_candidate_inverts_the_ratio(calls):
    other = calls[::-1]
    forth, back = compared(times(calls, other)), compared(times(other, calls))

    assert forth.speedup == pytest.approx(1 / back.speedup, rel=1e-6)
    assert forth.speedup_low == pytest.approx(1 / back.speedup_high, rel=1e-6)


@given(calls_between(1e-3, 1.0), st.lists(st.floats(0.0, 1.0), min_size=24, max_size=24))
def test_moving_work_out_of_calls_gains_at_most_the_undetectable_work(calls, shares):
    moved = [call * share for call, share in zip(calls, shares, strict=False)]
    kept = [max(call - work, 1e-9) for call, work in zip(calls, moved, strict=True)]
    outside = [BESIDE_S + work for work in moved]
    honest, hiding = times(calls, calls), times(calls, kept, outside=outside)

    for plain, charged in zip(
        charged_times(honest, "candidate"), charged_times(hiding, "candidate"), strict=True
    ):
        assert charged >= plain - HIDEABLE_S - 1e-9


# Pairs of processes -------------------------------------------------------------------------------


def in_pairs(ratios: list[float], blocks: int = 6) -> CaseTimes:
    """Return a case timed in as many process replicates as there are ratios."""
    calls = 2 * blocks
    made = times(
        [2e-3] * calls * len(ratios), [2e-3 / ratio for ratio in ratios for _ in range(calls)]
    )
    made.replicate_starts = [blocks * number for number in range(len(ratios))]
    return made


def test_each_replicate_has_equal_weight():
    item = compared(in_pairs([1.1, 1.2, 1.3, 1.4]))

    assert item.speedup == pytest.approx((1.1 * 1.2 * 1.3 * 1.4) ** 0.25)
    assert item.blocks_per_process == (6, 6, 6, 6)
    assert item.blocks == 24


def test_process_variation_shrinks_with_the_number_of_replicates():
    one = compare_strict(in_pairs([1.0]), "eager", 0.06, ())
    four = compare_strict(in_pairs([1.0] * 4), "eager", 0.06, ())

    assert math.log(one.speedup_high) == pytest.approx(1.96 * 0.06, rel=1e-3)
    # Eight degrees of freedom of eleven, and Student's t for eleven.
    expected = 2.201 * 0.06 * math.sqrt(8 / 11) / 2
    assert math.log(four.speedup_high) == pytest.approx(expected, rel=1e-3)


def test_replicates_that_disagree_widen_the_interval():
    item = compared(in_pairs([1.0, 1.0, 1.0, 1.4]))

    assert item.speedup == pytest.approx(1.4**0.25)
    assert item.conclusion == "no measurable difference"
    seen = (math.log(1.4) / 2) ** 2
    # Two degrees of freedom of five, since they scatter far beyond what is known.
    half = 2.571 * math.sqrt(3 / 5 * seen / 4)
    assert math.log(item.speedup_high / item.speedup) == pytest.approx(half)
    assert compared(in_pairs([1.3, 1.3, 1.31, 1.3])).conclusion == "faster"


def test_a_replicate_that_is_cut_short_still_counts():
    made = in_pairs([1.0, 1.0])
    made.total_s["candidate"] += [2e-3] * 2
    made.total_s["eager"] += [2e-3] * 2
    made.untimed_cpu_s = {name: [BESIDE_S] * 26 for name in made.total_s}

    assert compared(made).blocks_per_process == (6, 7)


def test_without_recorded_replicates_there_is_one():
    assert compared(times([2e-3] * 8, [1e-3] * 8)).blocks_per_process == (4,)
