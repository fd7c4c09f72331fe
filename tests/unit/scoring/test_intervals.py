"""Statistics against values computed by hand, and refused arguments."""

from __future__ import annotations

import math

import pytest

from tilewright.scoring.bootstrap import bootstrap_median_interval, median, quantile
from tilewright.scoring.intervals import (
    Interval,
    combine,
    decide,
    geometric_mean_interval,
    is_noisy,
    paired_log_ratios,
    proportion_interval,
    speedup_interval,
)


@pytest.mark.parametrize(
    ("values", "expected"),
    [([3.0], 3.0), ([2.0, 1.0], 1.5), ([9.0, 1.0, 5.0], 5.0), ([4.0, 1.0, 3.0, 2.0], 2.5)],
)
def test_median_is_the_middle(values, expected):
    assert expected == median(values)


def test_median_of_the_largest_floats_does_not_overflow():
    assert median([1.5e308, 1.5e308]) == 1.5e308


@pytest.mark.parametrize(
    ("q", "expected"), [(0.0, 1.0), (1.0, 4.0), (0.5, 2.5), (0.25, 1.75), (0.1, 1.3)]
)
def test_quantile_is_type_seven(q, expected):
    assert expected == pytest.approx(quantile([4.0, 1.0, 3.0, 2.0], q))


def test_quantile_of_one_value_is_that_value():
    assert quantile([7.0], 0.3) == 7.0


def test_a_block_gives_the_log_of_reference_over_candidate():
    (ratio,) = paired_log_ratios([(8.0, 2.0, 4.0, 16.0)])

    assert math.log(math.sqrt(8 * 16) / math.sqrt(2 * 4)) == pytest.approx(ratio)


def test_a_drift_that_grows_steadily_cancels_in_a_block():
    (ratio,) = paired_log_ratios([[100.0 * 1.01**step for step in range(4)]])

    assert pytest.approx(ratio, abs=1e-15) == 0.0


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ([], "no blocks"),
        ([(1.0, 2.0, 3.0)], "block 0 has 3 times, expected 4"),
        ([(1.0, 1.0, 1.0, 1.0), (1.0, 0.0, 1.0, 1.0)], "block 1 has a time"),
        ([(1.0, -1.0, 1.0, 1.0)], "not above zero"),
        ([(1.0, math.nan, 1.0, 1.0)], "not above zero"),
        ([(1.0, math.inf, 1.0, 1.0)], "not above zero"),
    ],
)
def test_blocks_that_cannot_be_paired_are_refused(blocks, message):
    with pytest.raises(ValueError, match=message):
        paired_log_ratios(blocks)


def test_the_interval_of_two_values_follows_the_formula():
    # Resamples of (0, 1) have the medians 0, 0.5, 1 with chances 1/4, 1/2, 1/4.
    assert bootstrap_median_interval([1.0, 0.0]) == (0.0, 1.0)
    assert bootstrap_median_interval([1.0, 0.0], level=0.4) == (0.5, 0.5)


def test_a_percentile_on_a_step_averages_both_neighbours():
    assert bootstrap_median_interval([0.0, 1.0], level=0.5) == (0.25, 0.75)


def test_the_interval_of_three_values_follows_the_formula():
    # Chances of the three values are 7/27, 13/27, 7/27; their middles 7/54, 1/2, 47/54.
    low, high = bootstrap_median_interval([0.0, 1.0, 2.0], level=1.0 - 2 * 0.25)

    expected = (0.25 - 7 / 54) / (0.5 - 7 / 54)
    assert (expected, 2.0 - expected) == pytest.approx((low, high))


def test_the_interval_of_one_value_has_no_width():
    assert bootstrap_median_interval([5.0]) == (5.0, 5.0)


@pytest.mark.parametrize("n", [2, 3])
def test_an_interval_of_nearly_full_confidence_is_the_whole_range(n):
    assert (0.0, n - 1.0) == bootstrap_median_interval(range(n), level=1.0 - 1e-15)


def test_one_outlier_does_not_move_the_interval():
    calm = [float(value) for value in range(40)]

    assert bootstrap_median_interval(calm) == bootstrap_median_interval([*calm[:-1], 1e9])


@pytest.mark.parametrize("count", [59, 60, 2001, 2000])
def test_the_bootstrap_distribution_sums_to_one(count):
    from tilewright.scoring.bootstrap import _median_outcomes

    assert pytest.approx(sum(chance for *_, chance in _median_outcomes(count)), abs=1e-9) == 1.0


@pytest.mark.parametrize("level", [0.0, 1.0, -0.5, math.nan])
def test_an_impossible_level_is_refused(level):
    with pytest.raises(ValueError, match="level"):
        bootstrap_median_interval([1.0, 2.0], level)
    with pytest.raises(ValueError, match="level"):
        proportion_interval(1, 2, level)


def test_errors_combine_in_quadrature():
    assert combine(3.0, 4.0) == 5.0
    assert combine(2.0, 0.0) == 2.0


@pytest.mark.parametrize("widths", [(-1.0, 0.0), (0.0, -1.0), (math.nan, 0.0), (0.0, math.inf)])
def test_invalid_widths_are_refused(widths):
    with pytest.raises(ValueError, match="combine"):
        combine(*widths)


def test_a_speedup_is_the_exponential_of_the_median():
    logs = [math.log(2.0)] * 20

    assert pytest.approx(_ends(speedup_interval(logs, 0.0))) == (2.0, 2.0, 2.0)


def test_the_scatter_between_processes_widens_a_speedup():
    interval = speedup_interval([0.0] * 20, 0.01)

    assert interval.estimate == 1.0
    assert math.exp(1.959964 * 0.01) == pytest.approx(interval.high)
    assert math.exp(-1.959964 * 0.01) == pytest.approx(interval.low)


def test_the_lower_and_upper_widths_are_independent():
    logs = [0.0] * 30 + [0.5] * 28
    low, high = bootstrap_median_interval(logs)
    interval = speedup_interval(logs, 0.1)

    assert 0.0 == low < high
    assert interval.high / interval.estimate > interval.estimate / interval.low


@pytest.mark.parametrize("logs", [[1000.0], [-1000.0]])
def test_a_ratio_beyond_floats_is_refused(logs):
    with pytest.raises(ValueError, match="no speed-up"):
        speedup_interval(logs, 0.0)


@pytest.mark.parametrize(
    ("middle", "low", "high", "expected"),
    [
        (1.04, 1.01, 1.07, "faster"),
        (0.96, 0.93, 0.99, "slower"),
        (1.03, 0.99, 1.07, "no measurable difference"),
        (1.03, 1.0, 1.06, "no measurable difference"),
        (0.97, 0.94, 1.0, "no measurable difference"),
        # Wider than 5 % on either side: by half as much again.
        (1.09, 1.01, 1.18, "no measurable difference"),
        (1.13, 1.05, 1.22, "faster"),
        (1 / 1.09, 1 / 1.18, 1 / 1.01, "no measurable difference"),
        (1 / 1.13, 1 / 1.22, 1 / 1.05, "slower"),
        (2.0, 1.5, 2.6, "faster"),
    ],
)
def test_a_conclusion_needs_the_whole_interval_on_one_side_of_one(middle, low, high, expected):
    assert expected == decide(Interval(middle, low, high))


@pytest.mark.parametrize(("half", "wide"), [(1.049, False), (1.051, True)])
def test_an_interval_is_noisy_beyond_5_percent_on_either_side(half, wide):
    assert is_noisy(Interval(1.3, 1.3 / half, 1.3 * half)) is wide


def test_the_mean_of_cases_is_geometric_and_its_width_shrinks():
    one = Interval(2.0, 2.0 / 1.1, 2.0 * 1.1)
    mean = geometric_mean_interval([one, Interval(8.0, 8.0 / 1.1, 8.0 * 1.1)])

    assert pytest.approx(mean.estimate) == 4.0
    assert math.log(1.1) / math.sqrt(2) == pytest.approx(math.log(mean.high / mean.estimate))
    assert math.log(1.1) / math.sqrt(2) == pytest.approx(math.log(mean.estimate / mean.low))
    assert _ends(one) == pytest.approx(_ends(geometric_mean_interval([one])))


@pytest.mark.parametrize(
    "interval",
    [Interval(1.0, 0.0, 2.0), Interval(1.0, 1.1, 2.0), Interval(1.0, 0.5, math.inf)],
)
def test_a_mean_of_broken_intervals_is_refused(interval):
    with pytest.raises(ValueError, match="not a positive interval"):
        geometric_mean_interval([interval])


@pytest.mark.parametrize(
    ("successes", "trials", "expected"),
    [
        # Wilson's intervals as printed by Newcombe (1998), table I, method 3.
        (81, 263, (0.3080, 0.2553, 0.3662)),
        (15, 148, (0.1014, 0.0624, 0.1605)),
        (0, 20, (0.0, 0.0, 0.1611)),
        (1, 29, (0.0345, 0.0061, 0.1718)),
        (20, 20, (1.0, 0.8389, 1.0)),
    ],
)
def test_a_proportion_has_wilsons_interval(successes, trials, expected):
    interval = proportion_interval(successes, trials)

    assert expected == pytest.approx(_ends(interval), abs=5e-5)


@pytest.mark.parametrize(("successes", "trials"), [(-1, 3), (4, 3)])
def test_an_impossible_count_is_refused(successes, trials):
    with pytest.raises(ValueError, match="successes"):
        proportion_interval(successes, trials)


@pytest.mark.parametrize(
    "call",
    [
        lambda: median([]),
        lambda: quantile([], 0.5),
        lambda: bootstrap_median_interval([]),
        lambda: speedup_interval([], 0.0),
        lambda: geometric_mean_interval([]),
        lambda: proportion_interval(0, 0),
        lambda: paired_log_ratios([]),
    ],
)
def test_statistics_of_no_values_are_refused(call):
    with pytest.raises(ValueError, match="were given"):
        call()


def test_values_that_are_not_finite_are_refused():
    with pytest.raises(ValueError, match="not finite"):
        median([1.0, math.nan])
    with pytest.raises(ValueError, match="not finite"):
        bootstrap_median_interval([1.0, math.inf])
    with pytest.raises(ValueError, match="between 0 and 1"):
        quantile([1.0], 1.5)


def _ends(interval: Interval) -> tuple[float, float, float]:
    return interval.estimate, interval.low, interval.high
