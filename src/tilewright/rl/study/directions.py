"""Effects between two arms of a study, paired by seed, with their intervals. No torch."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

STUDENT_95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
"""97.5 % quantiles of Student's distribution for 1 to 9 degrees of freedom."""
MIN_EFFECT = 0.10
"""Differences of a share below this are not called an effect, whatever their interval is."""
Figures = Sequence[Mapping[str, float | None]]


@dataclass(frozen=True)
class Effect:
    """The difference of a figure between two arms: the mean over paired seeds."""

    seen: float | None
    """`None`: some arm has no figure."""
    low: float | None
    high: float | None
    """The ends of the 95 % interval; `None`: there are fewer than two seeds."""
    seeds: int
    resolvable: float | None
    """The smallest difference that these seeds tell from 0."""

    @property
    def is_resolved(self) -> bool:
        """Whether the interval excludes 0 and the difference is at least `MIN_EFFECT`."""
        if self.seen is None or self.low is None or self.high is None:
            return False
        return abs(self.seen) >= MIN_EFFECT and not self.low <= 0.0 <= self.high


def last_value(figures: Figures, name: str, steps: int) -> float | None:
    """Return the mean of a figure over the last steps of an arm."""
    values = [value for step in figures[-steps:] if (value := step.get(name)) is not None]
    return statistics.fmean(values) if values else None


def next_seed(arm: Mapping[str, Any], figure: str, steps: int) -> tuple[float, float] | None:
    """Return the 95 % prediction interval of a figure of one more seed of an arm.

    `None`: fewer than two seeds have the figure.
    """
    values = [last_value(run["figures"], figure, steps) for run in arm.values()]
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return None
    spread = statistics.stdev(known) * math.sqrt(1 + 1 / len(known))
    half = STUDENT_95[min(len(known) - 1, len(STUDENT_95)) - 1] * spread
    mean = statistics.fmean(known)
    return mean - half, mean + half


def effect(arm: Mapping[str, Any], against: Mapping[str, Any], figure: str, steps: int) -> Effect:
    """Return the difference between two arms of a log over the seeds that both have."""
    pairs = [
        (last_value(arm[seed]["figures"], figure, steps),
         last_value(against[seed]["figures"], figure, steps))
        for seed in arm if seed in against
    ]  # fmt: skip
    found = [ours - theirs for ours, theirs in pairs if ours is not None and theirs is not None]
    if not found:
        return Effect(None, None, None, 0, None)
    mean = statistics.fmean(found)
    if len(found) < 2:
        return Effect(mean, None, None, 1, None)
    quantile = STUDENT_95[min(len(found) - 1, len(STUDENT_95)) - 1]
    half = quantile * statistics.stdev(found) / math.sqrt(len(found))
    return Effect(mean, mean - half, mean + half, len(found), max(half, MIN_EFFECT))
