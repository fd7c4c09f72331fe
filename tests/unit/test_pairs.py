"""What several pairs of processes say together, against what was drawn."""

from __future__ import annotations

import math
import random

import pytest

from tilewright.scoring.pairs import pair_ratios, pairs_interval
from tilewright.scoring.statistics import median, paired_log_ratios, speedup_interval

BLOCKS = 20


def pairs(count: int, between: float, within: float, seed: int) -> list[list[float]]:
    """Return block ratios of pairs whose truth is 0."""
    source = random.Random(seed)
    found = []
    for _ in range(count):
        centre = source.gauss(0.0, between)
        found.append([source.gauss(centre, within) for _ in range(BLOCKS)])
    return found


def test_one_pair_is_judged_by_its_own_interval():
    (group,) = pairs(1, 0.01, 0.01, 1)
    assert pairs_interval([group], 0.02) == speedup_interval(group, 0.02)


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("between", [0.005, 0.02, 0.04])
def test_the_truth_is_inside_about_as_often_as_promised(count, between):
    # The calibration's sigma covers 95 of 100; the typical scatter is half of it.
    runs, sigma = 600, 0.04
    inside = 0
    for seed in range(runs):
        made = pairs_interval(pairs(count, between, 0.01, seed), sigma)
        inside += made.low <= 1.0 <= made.high
    # Four degrees of freedom say 0.02: whoever scatters twice as much is covered less often.
    least = 0.91 if between <= 0.02 else 0.80
    assert inside / runs >= least


def test_pairs_that_differ_widen_the_interval_and_those_that_agree_do_not():
    apart = pairs_interval([[0.05] * 6, [-0.05] * 6, [0.04] * 6, [-0.04] * 6], 0.01)
    agreed = pairs_interval([[0.0] * 6] * 4, 0.01)
    assert math.log(apart.high / apart.low) > 5 * math.log(agreed.high / agreed.low)
    assert agreed.low < 1.0 < agreed.high


def blocks(*ratios: float) -> list[tuple[float, ...]]:
    """Return one ABBA block for each ratio, in microseconds."""
    return [(10.0 * ratio, 10.0, 10.0, 10.0 * ratio) for ratio in ratios]


def test_without_lanes_a_pairs_ratios_are_those_of_its_blocks():
    made = blocks(1.1, 1.2, 1.3, 1.4)
    ratios = paired_log_ratios(made)

    assert pair_ratios(made) == [ratios]
    assert pair_ratios(made, (3, 1)) == [ratios[:3], ratios[3:]]
    assert pair_ratios(made, (2, 2), (2, 2)) == [ratios[:2], ratios[2:]]


def test_each_lane_of_a_pair_has_one_voice():
    # A lane of one block counts as much as one of three, and its odd block moves only its median.
    (ratios,) = pair_ratios(blocks(1.1, 1.1, 1.4, 1.21), (4,), (3, 1))

    assert median(ratios) == pytest.approx(1.5 * math.log(1.1))
    assert sorted(ratios)[-1] == pytest.approx(1.5 * math.log(1.1) + math.log(1.4 / 1.1))


def test_what_lanes_differ_by_is_in_no_pairs_scatter():
    source = random.Random(7)
    quiet = [math.exp(source.gauss(0.0, 0.001)) for _ in range(12)]
    lucky = [
        ratio * luck for ratio, luck in zip(quiet, [1.02] * 4 + [0.97] * 4 + [1.0] * 4, strict=True)
    ]
    levelled, plain = (pair_ratios(blocks(*lucky), (12,), lanes) for lanes in ((4, 4, 4), ()))

    assert max(levelled[0]) - min(levelled[0]) < 0.006 < max(plain[0]) - min(plain[0])
    centre = math.log(1.02 * 0.97) / 3
    assert median(levelled[0]) == pytest.approx(centre, abs=1e-3)


@pytest.mark.parametrize(
    ("counts", "lanes"), [((3,), ()), ((2, 2), (3, 1)), ((4,), (2, 1)), ((4,), (5,))]
)
def test_counts_that_do_not_fit_the_blocks_are_refused(counts, lanes):
    with pytest.raises(ValueError, match="4 blocks"):
        pair_ratios(blocks(1.0, 1.0, 1.0, 1.0), counts, lanes)


@pytest.mark.parametrize("count", [0, 11])
def test_no_pairs_and_too_many_are_refused(count):
    with pytest.raises(ValueError, match="pairs"):
        pairs_interval([[0.0, 0.0]] * count, 0.01)
