"""Properties of the statistics for arbitrary data."""

from __future__ import annotations

import math
import random
from bisect import bisect_left
from collections import Counter
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.scoring.bootstrap import bootstrap_median_interval, median, quantile
from tilewright.scoring.intervals import (
    Interval,
    decide,
    geometric_mean_interval,
    paired_log_ratios,
    proportion_interval,
    speedup_interval,
)

NUMBERS = st.floats(-1e6, 1e6).map(lambda value: round(value, 6))
SAMPLES = st.lists(NUMBERS, min_size=1, max_size=70)
TIED_SAMPLES = st.lists(st.sampled_from([0.0, 0.1, 0.2, 0.3, 7.0]), min_size=1, max_size=70)
LEVELS = st.floats(0.01, 0.999)
TIMES_US = st.floats(1e-3, 1e7)
BLOCKS = st.lists(st.tuples(TIMES_US, TIMES_US, TIMES_US, TIMES_US), min_size=1, max_size=30)
SPEEDUPS = st.tuples(st.floats(0.01, 100), st.floats(1, 3), st.floats(1, 3)).map(
    lambda part: Interval(part[0], part[0] / part[1], part[0] * part[2])
)


@given(SAMPLES | TIED_SAMPLES, LEVELS)
def test_the_interval_contains_the_median_and_stays_in_the_range(values, level):
    low, high = bootstrap_median_interval(values, level)

    assert min(values) <= low <= median(values) <= high <= max(values)


@given(SAMPLES | TIED_SAMPLES, LEVELS, LEVELS)
def test_more_certainty_never_makes_the_interval_narrower(values, one, other):
    low, high = bootstrap_median_interval(values, min(one, other))
    wider_low, wider_high = bootstrap_median_interval(values, max(one, other))

    assert wider_low <= low
    assert high <= wider_high


@given(SAMPLES | TIED_SAMPLES, LEVELS, st.floats(0.001, 1000), st.floats(-100, 100))
def test_the_interval_scales_and_shifts_with_the_values(values, level, scale, shift):
    low, high = bootstrap_median_interval(values, level)
    moved = bootstrap_median_interval([scale * value + shift for value in values], level)

    assert (scale * low + shift, scale * high + shift) == pytest.approx(moved, abs=1e-6, rel=1e-9)


@given(SAMPLES | TIED_SAMPLES, LEVELS)
def test_negating_the_values_negates_the_interval(values, level):
    low, high = bootstrap_median_interval(values, level)

    assert (-high, -low) == pytest.approx(
        bootstrap_median_interval([-value for value in values], level), rel=1e-9, abs=1e-9
    )


@given(SAMPLES, LEVELS, st.randoms(use_true_random=False))
def test_the_order_of_the_values_does_not_matter(values, level, chance):
    shuffled = list(values)
    chance.shuffle(shuffled)

    assert bootstrap_median_interval(values, level) == bootstrap_median_interval(shuffled, level)


@given(BLOCKS)
def test_swapping_baseline_and_candidate_negates_every_log_ratio(blocks):
    swapped = [(second, first, fourth, third) for first, second, third, fourth in blocks]

    assert tuple(-ratio for ratio in paired_log_ratios(blocks)) == pytest.approx(
        paired_log_ratios(swapped), abs=1e-12
    )


@given(BLOCKS, TIMES_US)
def test_a_slower_machine_changes_no_ratio(blocks, factor):
    slower = [tuple(factor * time_us for time_us in block) for block in blocks]

    assert paired_log_ratios(blocks) == pytest.approx(paired_log_ratios(slower), abs=1e-9)


@given(st.lists(st.floats(-3, 3), min_size=1, max_size=40), st.floats(0, 0.5), LEVELS)
def test_swapping_baseline_and_candidate_inverts_speedup_and_conclusion(logs, sigma, level):
    one = speedup_interval(logs, sigma, level)
    other = speedup_interval([-ratio for ratio in logs], sigma, level)

    assert (1 / other.estimate, 1 / other.high, 1 / other.low) == pytest.approx(
        (one.estimate, one.low, one.high)
    )
    opposite = {"faster": "slower", "slower": "faster"}
    # Where rounding decides, on the edge of a claim or of what is noisy, it may go either way.
    edges = [math.log(one.estimate) - far * width for far in (1, 1.5) for width in
             (math.log(one.estimate / one.low), math.log(one.estimate / one.high))]  # fmt: skip
    edges.append(one.high / one.low - 1.05**2)
    if min(abs(edge) for edge in edges) > 1e-9:
        assert opposite.get(decide(one), decide(one)) == decide(other)


@given(st.lists(st.floats(-3, 3), min_size=1, max_size=40), st.floats(0, 0.5), st.floats(0, 0.5))
def test_more_scatter_between_processes_never_narrows_a_speedup(logs, one, other):
    narrow = speedup_interval(logs, min(one, other))
    wide = speedup_interval(logs, max(one, other))

    assert wide.low <= narrow.low <= narrow.estimate <= narrow.high <= wide.high


@given(st.lists(SPEEDUPS, min_size=1, max_size=8))
def test_the_mean_of_cases_lies_between_them_and_is_no_wider_than_the_widest(intervals):
    mean = geometric_mean_interval(intervals)
    widths = [math.log(each.high / each.low) for each in intervals]

    assert mean.low <= mean.estimate <= mean.high
    assert min(each.estimate for each in intervals) <= mean.estimate * (1 + 1e-12)
    assert mean.estimate <= max(each.estimate for each in intervals) * (1 + 1e-12)
    assert math.log(mean.high / mean.low) <= math.sqrt(2) * max(widths) + 1e-12


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), LEVELS)
def test_a_proportion_lies_in_its_interval_and_mirrors(count, level):
    successes, trials = count
    one = proportion_interval(successes, trials, level)
    other = proportion_interval(trials - successes, trials, level)

    assert 0.0 <= one.low <= one.estimate <= one.high <= 1.0
    assert (1 - other.high, 1 - other.low) == pytest.approx((one.low, one.high), abs=1e-12)


@given(SAMPLES, st.floats(0, 1), st.floats(0, 1))
def test_quantiles_rise_and_meet_the_median(values, one, other):
    assert quantile(values, min(one, other)) <= quantile(values, max(one, other))
    assert median(values) == pytest.approx(quantile(values, 0.5), abs=1e-9)


@pytest.mark.parametrize("n", [20, 23, 40, 60])
def test_the_interval_covers_the_true_median_as_often_as_stated(n):
    chance = random.Random(n)
    logs = [[_noisy_log_ratio(chance) for _ in range(n)] for _ in range(1000)]
    covered = sum(low <= 0.0 <= high for low, high in map(bootstrap_median_interval, logs))

    # Symmetric noise on both sides, so the true median of the log ratio is 0.
    assert 0.92 <= covered / len(logs) <= 0.98


@pytest.mark.parametrize("n", [20, 37])
def test_a_planted_difference_is_covered_as_often_as_stated(n):
    chance = random.Random(1000 + n)
    planted = math.log(1.03)
    covered = 0
    for _ in range(500):
        interval = speedup_interval([planted + _noisy_log_ratio(chance) for _ in range(n)], 0.0)
        covered += interval.low <= 1.03 <= interval.high

    assert 0.92 <= covered / 500 <= 0.98


@pytest.mark.parametrize("n", [5, 8, 21, 24])
def test_the_exact_interval_is_the_limit_of_random_resampling(n):
    chance = random.Random(n)
    values = [chance.lognormvariate(0.0, 0.1) for _ in range(n)]
    resamples = 20_000
    medians = sorted(median(chance.choices(values, k=n)) for _ in range(resamples))
    low, high = bootstrap_median_interval(values)

    if n % 2:
        # Interpolated between steps: the same rule on the observed frequencies.
        assert _interpolated(medians, 0.025) == pytest.approx(low, rel=0.01)
        assert _interpolated(medians, 0.975) == pytest.approx(high, rel=0.01)
    else:
        assert medians[int(0.020 * resamples)] <= low <= medians[int(0.030 * resamples)]
        assert medians[int(0.970 * resamples)] <= high <= medians[int(0.980 * resamples)]


def _noisy_log_ratio(chance: random.Random) -> float:
    """One ABBA block of two equal runners: lognormal noise of 2 %, and one call in 20 is slow."""

    def call_us() -> float:
        slow = 1.0 + chance.expovariate(2.0) if chance.random() < 0.05 else 1.0
        return 50.0 * chance.lognormvariate(0.0, 0.02) * slow

    (ratio,) = paired_log_ratios([[call_us() for _ in range(4)]])
    return ratio


def _interpolated(medians: list[float], q: float) -> float:
    counts = Counter(medians)
    steps = sorted(counts)
    ends = accumulate(counts[value] for value in steps)
    middles = [
        (end - counts[value] / 2) / len(medians) for end, value in zip(ends, steps, strict=True)
    ]
    above = bisect_left(middles, q)
    if above in (0, len(steps)):
        return steps[min(above, len(steps) - 1)]
    share = (q - middles[above - 1]) / (middles[above] - middles[above - 1])
    return steps[above - 1] + share * (steps[above] - steps[above - 1])
