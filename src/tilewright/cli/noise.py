"""A/A: the reference judged against itself, and what its scatter says about this machine."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Any

from tilewright.config import Config
from tilewright.evaluator.calibration import (
    DEFAULT,
    GPU_AT_US,
    GPU_DEFAULT,
    GPU_LEAST,
    GPU_SHORT_US,
    class_of,
    share_left,
)
from tilewright.problems.reader import find_problem
from tilewright.records import Candidate, Comparison, EvalReport, EvalRequest
from tilewright.scoring import statistics

__all__ = ["Sample", "Scatter", "calibrated", "samples_of", "scatter_of", "self_request"]

NORMAL_95 = 1.959964
FLOOR = 0.002
"""No calibration claims less than this between two processes."""
LEVEL = 0.95
FEWEST = 6
"""Samples that a class needs; one with fewer keeps the default."""
Progress = Callable[[str, dict[str, Any]], None]


@dataclass(frozen=True)
class Sample:
    """One A/A comparison: the true log ratio is zero."""

    problem: str
    case: str
    call_us: float
    moved_bytes: int
    log_ratio: float
    within: float
    """Standard deviation of the log ratio as its own blocks show it."""


@dataclass(frozen=True)
class Scatter:
    """How far A/A ratios were from 1."""

    runs: int
    call_us: float
    median: float
    """Of |log ratio|."""
    worst: float


def self_request(name: str, settings: Config, cases: Sequence[str] = ()) -> EvalRequest:
    """Return a request that judges a bundled problem's reference against itself.

    `cases` names those that are kept; none: all. Only timing matters here, so nothing is varied.
    """
    problem = find_problem(name)
    kept = tuple(case for case in problem.cases if not cases or case.name in cases)
    problem = problem.model_copy(update={"cases": kept, "sizes": {}, "contents": ("nominal",)})
    entry = "Model" if problem.kind == "module" else "reference"
    section = settings.eval
    return EvalRequest(
        problem=problem,
        candidate=Candidate(language="torch", files=(problem.source,), entry=entry),
        timing=section.timing,
        limits=section.limits,
        device=section.device,
    )


def samples_of(report: EvalReport) -> list[Sample]:
    """Return one sample for each pair of processes of each case that was timed."""
    return [
        _sample(report, item, slice(start, stop))
        for item in report.comparisons
        if item.raw_us
        for start, stop in pairwise([0, *accumulate(item.pairs or (len(item.raw_us),))])
    ]


def _sample(report: EvalReport, item: Comparison, pair: slice) -> Sample:
    ratios = statistics.paired_log_ratios(item.raw_us[pair])
    low, high = statistics.bootstrap_median_interval(ratios)
    return Sample(
        problem=report.request.problem.id,
        case=item.case,
        call_us=item.reference.median_us,
        moved_bytes=item.moved_bytes,
        log_ratio=_nearest(statistics.median(ratios), item.said_us[pair]),
        within=(high - low) / (2 * NORMAL_95),
    )


def _nearest(judged: float, said: Sequence[Sequence[float]]) -> float:
    """Return what the interval of a comparison has to reach beyond.

    On a GPU it holds what the judge's clock says, and what the sides' own events refine it to.
    """
    if not said:
        return judged
    refined = statistics.median(statistics.paired_log_ratios(said))
    return 0.0 if judged * refined < 0 else min(judged, refined, key=abs)


def scatter_of(samples: Sequence[Sample]) -> Scatter | None:
    """Return how far the samples are from no difference; `None` without any."""
    if not samples:
        return None
    sizes = [abs(item.log_ratio) for item in samples]
    return Scatter(
        runs=len(samples),
        call_us=statistics.median([item.call_us for item in samples]),
        median=statistics.median(sizes),
        worst=max(sizes),
    )


def calibrated(
    samples: Sequence[Sample], *, on_gpu: bool = False
) -> tuple[tuple[float, ...], tuple[int, ...]]:
    """Return the sigma of each class of calls, and how many samples it rests on.

    It is the smallest with which 95 % of the samples' intervals contain 1: what a ratio needs
    beyond what the blocks of its one pair of processes show, subtracted in quadrature. Of few
    samples a higher quantile is taken, by its own standard error, so that new runs are covered.
    """
    if on_gpu:
        return _calibrated_on_gpu(samples)
    chosen: list[list[Sample]] = [[] for _ in DEFAULT.sigmas]
    for item in samples:
        chosen[class_of(item.call_us, item.moved_bytes)].append(item)
    sigmas = [_sigma_or(wide, own) for wide, own in zip(DEFAULT.sigmas, chosen, strict=True)]
    return tuple(sigmas), tuple(len(own) for own in chosen)


def _calibrated_on_gpu(samples: Sequence[Sample]) -> tuple[tuple[float, ...], tuple[int, ...]]:
    """Return what a call of 10 us has by the time that processes differ by, and one of up to 100.

    The first is of short calls, in which it is all but everything, the second of the others.
    """
    short = [
        replace(item, log_ratio=item.log_ratio * scale, within=item.within * scale)
        for item in samples
        if item.call_us <= GPU_SHORT_US
        for scale in [item.call_us / GPU_AT_US]
    ]
    first = _sigma_or(GPU_DEFAULT.sigmas[0], short)
    others = [
        replace(item, log_ratio=item.log_ratio / left, within=math.hypot(*known) / left)
        for item in samples
        if item.call_us > GPU_SHORT_US
        for left in [share_left(item.call_us)]
        for known in [(item.within, first * GPU_AT_US / item.call_us, GPU_LEAST)]
    ]
    return (first, _sigma_or(GPU_DEFAULT.sigmas[1], others)), (len(short), len(others))


def _sigma_or(wide: float, samples: Sequence[Sample]) -> float:
    return _sigma(samples) if len(samples) >= FEWEST else wide


def _sigma(samples: Sequence[Sample]) -> float:
    needed = [max((item.log_ratio / NORMAL_95) ** 2 - item.within**2, 0.0) for item in samples]
    level = min(LEVEL + math.sqrt(LEVEL * (1 - LEVEL) / len(needed)), 1.0)
    return max(math.sqrt(statistics.quantile(needed, level)), FLOOR)
