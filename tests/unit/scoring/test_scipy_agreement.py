"""Statistics compared with scipy."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from scipy import stats

from tilewright.scoring import process_replicates
from tilewright.scoring.bootstrap import bootstrap_median_interval
from tilewright.scoring.intervals import proportion_interval, speedup_interval


def test_t_quantiles_equal_those_of_scipy():
    table = process_replicates.STUDENT_95

    assert len(table) == 15
    for freedom, quantile in enumerate(table, start=3):
        assert quantile == pytest.approx(stats.t.ppf(0.975, freedom), abs=0.0005)


def test_normal_quantiles_equal_those_of_scipy():
    wide = speedup_interval([0.0] * 20, 0.01)

    assert pytest.approx(stats.norm.ppf(0.975), abs=1e-6) == process_replicates.NORMAL_95
    assert wide.high == pytest.approx(stats.lognorm.ppf(0.975, 0.01))


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
@pytest.mark.parametrize(("successes", "trials"), [(0, 1), (0, 20), (3, 7), (50, 100), (20, 20)])
def test_the_proportion_interval_equals_the_wilson_interval_of_scipy(successes, trials, level):
    found = proportion_interval(successes, trials, level)

    result = stats.binomtest(successes, trials)
    wilson = result.proportion_ci(confidence_level=level, method="wilson")
    assert found.estimate == result.statistic
    assert (found.low, found.high) == pytest.approx((wilson.low, wilson.high), abs=1e-12)


@pytest.mark.parametrize("count", [10, 11, 40, 41])
def test_the_median_interval_is_near_the_bootstrap_interval_of_scipy(count):
    rng = random.Random(count)
    values = sorted(rng.gauss(0.0, 1.0) for _ in range(count))

    resampled = stats.bootstrap(
        (values,),
        statistic=_median,
        method="percentile",
        n_resamples=20_000,
        rng=1,
    ).confidence_interval
    # An interval for an odd count is interpolated: it may lie one step away from a resampled one.
    step = max(after - before for before, after in pairwise(values))
    tolerance = step if count % 2 else 0.08
    found = bootstrap_median_interval(values)
    assert found == pytest.approx((resampled.low, resampled.high), abs=tolerance)


def _median(values, axis):
    import numpy as np

    return np.median(values, axis=axis)
