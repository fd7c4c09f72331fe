"""What several pairs of processes say together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate, pairwise

from tilewright.scoring.statistics import (
    Interval,
    bootstrap_median_interval,
    from_logs,
    median,
    paired_log_ratios,
    speedup_interval,
)

__all__ = ["pair_ratios", "pairs_interval"]

PRIOR_FREEDOM = 4
"""How many degrees of freedom the scatter that is known beforehand counts for."""
TYPICAL = 0.5
"""The calibration's sigma covers 95 of 100 pairs, so that one pair can be believed; the usual
scatter is about half of it (docs/measurements)."""
NORMAL_95 = 1.959964
_STUDENT_95 = (2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160)
"""Two-sided 95 % quantiles of Student's t for 5 to 13 degrees of freedom."""


def pair_ratios(
    blocks: Sequence[Sequence[float]], pairs: Sequence[int] = (), lanes: Sequence[int] = ()
) -> list[tuple[float, ...]]:
    """Return the log ratios of the blocks of each pair of processes, with its lanes levelled.

    A pair's blocks were made on several streams, its lanes, one after the other. Each ratio is
    shifted by what its lane's median differs from the mean of all medians of its pair, so that
    what is left is the scatter within lanes around what they say together.

    Args:
        blocks: ABBA blocks of four times, as `paired_log_ratios` takes them.
        pairs: how many blocks each pair made, in order; none: one pair made all.
        lanes: how many blocks each lane has, in order; a lane is within one pair. None: one each.

    Raises:
        ValueError: as `paired_log_ratios`, or the counts do not add up to the blocks.
    """
    ratios = paired_log_ratios(blocks)
    ends = list(accumulate(pairs or (len(ratios),)))
    lane_ends = list(accumulate(lanes)) or ends
    if ends[-1] != len(ratios) or not {*ends} <= {*lane_ends} or lane_ends[-1] != len(ratios):
        raise ValueError(
            f"pair_ratios: {len(ratios)} blocks, pairs of {tuple(pairs)}, lanes of {tuple(lanes)}"
        )
    parts = [ratios[start:stop] for start, stop in pairwise([0, *lane_ends])]
    found, of_pair = [], list[tuple[float, ...]]()
    for part, end in zip(parts, lane_ends, strict=True):
        of_pair.append(part)
        if end in ends:
            found.append(_levelled(of_pair))
            of_pair = []
    return found


def _levelled(lanes: Sequence[Sequence[float]]) -> tuple[float, ...]:
    if len(lanes) == 1:
        return tuple(lanes[0])
    medians = [median(lane) for lane in lanes]
    mean = math.fsum(medians) / len(medians)
    return tuple(
        ratio - middle + mean for lane, middle in zip(lanes, medians, strict=True) for ratio in lane
    )


def pairs_interval(groups: Sequence[Sequence[float]], between_process_sigma: float) -> Interval:
    """Return the geometric mean of what pairs of processes say, with its 95 % interval.

    For one pair it is `speedup_interval`. For more, the pairs show themselves how far they
    scatter. Of so few that is a poor estimate, so it is moderated by what was known beforehand
    (Smyth 2004, equation for the posterior variance): a mean of both variances, weighted by their
    degrees of freedom, with the t quantile of the sum.

    Args:
        groups: log ratios of blocks, one sequence a pair of processes; at most ten.
        between_process_sigma: of the calibration, without unit.

    Raises:
        ValueError: as `speedup_interval`, or there are no pairs, or too many.
    """
    count = len(groups)
    if not 1 <= count <= len(_STUDENT_95) + 1:
        raise ValueError(f"pairs_interval: {count} pairs, wanted 1 to {len(_STUDENT_95) + 1}")
    if count == 1:
        return speedup_interval(groups[0], between_process_sigma)
    centres = [median(group) for group in groups]
    mean = math.fsum(centres) / count
    seen = math.fsum((centre - mean) ** 2 for centre in centres) / (count - 1)
    known = math.fsum(_within(group) for group in groups) / count
    known += (TYPICAL * between_process_sigma) ** 2
    freedom = PRIOR_FREEDOM + count - 1
    variance = (PRIOR_FREEDOM * known + (count - 1) * seen) / freedom
    half = _STUDENT_95[freedom - PRIOR_FREEDOM - 1] * math.sqrt(variance / count)
    return from_logs(mean, half, half)


def _within(group: Sequence[float]) -> float:
    """Return the variance of a pair's estimate, by the scatter of its own blocks."""
    low, high = bootstrap_median_interval(group)
    return ((high - low) / (2 * NORMAL_95)) ** 2
