"""The interval of several process replicates, against simulated ones."""

from __future__ import annotations

import math
import random

import pytest

from tilewright.scoring.bootstrap import median
from tilewright.scoring.intervals import speedup_interval
from tilewright.scoring.process_replicates import median_variances, replicates_interval

BLOCKS = 20


def replicates(count: int, between: float, within: float, seed: int) -> list[list[float]]:
    """Return log ratios of blocks of replicates whose true log ratio is 0."""
    source = random.Random(seed)
    found = []
    for _ in range(count):
        centre = source.gauss(0.0, between)
        found.append([source.gauss(centre, within) for _ in range(BLOCKS)])
    return found


def test_one_replicate_is_judged_by_its_own_interval():
    (group,) = replicates(1, 0.01, 0.01, 1)
    assert replicates_interval([group], 0.02) == speedup_interval(group, 0.02)


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("between", [0.005, 0.02, 0.04, 0.1])
def test_the_interval_covers_the_truth_as_often_as_stated(count, between):
    runs, sigma = 600, 0.02
    inside = 0
    for seed in range(runs):
        made = replicates_interval(replicates(count, between, 0.01, seed), sigma)
        inside += made.low <= 1.0 <= made.high
    # Sigma 0.02 counts as two degrees of freedom, so twice the scatter is covered less often.
    # Replicates of far more scatter show it, but two replicates do not always.
    least = 0.91 if between <= 0.02 else 0.68 if count == 2 else 0.86
    assert inside / runs >= least


def test_replicates_far_apart_outweigh_the_calibrated_sigma():
    spread = [[0.10] * 6, [-0.10] * 6, [0.08] * 6, [-0.08] * 6]
    seen = math.sqrt(4 / 3 * (0.1**2 + 0.08**2) / 2)
    found = replicates_interval(spread, 0.01)
    known = math.sqrt((2 * 0.01**2 + 3 * seen**2) / 5)
    assert math.log(found.high) == pytest.approx(2.571 * known / 2, rel=1e-3)


def test_only_replicates_that_differ_widen_the_interval():
    apart = replicates_interval([[0.05] * 6, [-0.05] * 6, [0.04] * 6, [-0.04] * 6], 0.01)
    agreed = replicates_interval([[0.0] * 6] * 4, 0.01)
    assert math.log(apart.high / apart.low) > 3 * math.log(agreed.high / agreed.low)
    assert agreed.low < 1.0 < agreed.high


@pytest.mark.parametrize("count", [0, 11])
def test_zero_or_too_many_replicates_are_refused(count):
    with pytest.raises(ValueError, match="process replicates, expected 1 to 10"):
        replicates_interval([[0.0, 0.0]] * count, 0.01)


NOISE = {
    "normal": lambda source: source.gauss(0.0, 0.01),
    "heavy": lambda source: source.expovariate(100.0) * source.choice((-1, 1)),
    "spikes": lambda source: source.gauss(0.0, 0.08 if source.random() < 0.1 else 0.01),
}


@pytest.mark.parametrize("blocks", [4, 6, 10])
@pytest.mark.parametrize("noise", NOISE)
def test_a_few_blocks_of_three_replicates_show_how_far_a_median_scatters(blocks, noise):
    source, estimates, squares = random.Random(blocks), [], []
    for _ in range(800):
        groups = [[NOISE[noise](source) for _ in range(blocks)] for _ in range(3)]
        estimates += median_variances(groups)
        squares += [median(group) ** 2 for group in groups]
    ratio = math.fsum(estimates) / math.fsum(squares)
    assert 0.6 < ratio < 1.5


def test_the_variance_of_a_median_falls_with_the_blocks_of_its_replicate():
    few, many = median_variances([[0.0, 0.1] * 2, [0.0, 0.1] * 8])
    assert few == pytest.approx(4 * many)


def test_one_block_of_each_replicate_shows_no_scatter():
    assert median_variances([[0.1], [0.3]]) == [0.0, 0.0]


@pytest.mark.parametrize("count", [5, 6, 9])
def test_one_disturbed_process_of_five_or_more_hides_no_slow_down(count):
    quiet = [[-0.05 + 0.001 * number] * 4 for number in range(count - 1)]
    found = replicates_interval([*quiet, [0.10] * 4], 0.004)
    assert math.log(found.high) < -0.03
    # Fewer cannot tell which one is disturbed.
    assert replicates_interval([*quiet[:2], [0.10] * 4], 0.004).high > 1


@pytest.mark.parametrize("count", [5, 6, 8])
def test_a_trimmed_mean_covers_the_truth_as_often_as_stated(count):
    inside = 0
    for seed in range(600):
        made = replicates_interval(replicates(count, 0.01, 0.01, seed), 0.01)
        inside += made.low <= 1.0 <= made.high
    assert 0.92 <= inside / 600 <= 0.99
