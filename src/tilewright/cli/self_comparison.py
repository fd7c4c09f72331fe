"""A/A comparison: time the reference against itself, and derive the noise of this machine."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from tilewright.config import Config
from tilewright.evaluator.timing import calibration
from tilewright.problems.loader import find_problem
from tilewright.records import Candidate, Comparison, EvalReport, EvalRequest
from tilewright.scoring import bootstrap, intervals

NORMAL_95 = 1.959964
MIN_SIGMA = 0.002
"""Smallest sigma of a calibration. A smaller one would rest on too few samples."""
LEVEL = 0.95
"""Share of A/A intervals that must contain 1."""
MIN_SAMPLES = 6
"""Fewest samples of a class. A class with fewer keeps the default sigma."""
Fitted = tuple[tuple[float, ...], tuple[int, ...]]


@dataclass(frozen=True)
class Sample:
    """One A/A comparison: the true log ratio is zero."""

    problem: str
    case: str
    time_us: float
    moved_bytes: int
    log_ratio: float
    within: float
    """Standard deviation of the log ratio, from its own blocks."""


@dataclass(frozen=True)
class Scatter:
    """Distances of A/A ratios from 1."""

    runs: int
    call_us: float
    median: float
    """Of |log ratio|."""
    worst: float


def self_request(name: str, settings: Config, cases: Sequence[str] = ()) -> EvalRequest:
    """Return a request that compares the reference of a bundled problem with itself.

    `cases` names the cases that are kept; empty: all. Inputs are not varied, since only times
    matter.
    """
    problem = find_problem(name)
    kept = tuple(case for case in problem.cases if not cases or case.name in cases)
    update = {"cases": kept, "size_ranges": {}, "input_variations": ("nominal",)}
    entry = "Model" if problem.kind == "module" else "reference"
    return EvalRequest(
        problem=problem.model_copy(update=update),
        candidate=Candidate(language="torch", files=(problem.source,), entry=entry),
        **{name: getattr(settings.eval, name) for name in ("timing", "limits", "device")},
    )


def samples_of(report: EvalReport) -> list[Sample]:
    """Return one sample for each process replicate of each timed case."""
    found = []
    for item in report.comparisons:
        ends = accumulate(item.blocks_per_process or (len(item.raw_us),))
        slices = [slice(*pair) for pair in pairwise([0, *ends])] if item.raw_us else []
        found += [_sample(report, item, blocks) for blocks in slices]
    return found


def _sample(report: EvalReport, item: Comparison, blocks: slice) -> Sample:
    ratios = intervals.paired_log_ratios(item.raw_us[blocks])
    low, high = bootstrap.bootstrap_median_interval(ratios)
    return Sample(
        problem=report.request.problem.id,
        case=item.case,
        time_us=item.baseline_timing.median_us,
        moved_bytes=item.moved_bytes,
        log_ratio=_nearest(bootstrap.median(ratios), item.self_reported_us[blocks]),
        within=(high - low) / (2 * NORMAL_95),
    )


def _nearest(judged: float, said: Sequence[Sequence[float]]) -> float:
    """Return the log ratio to cover: on a GPU, that of the judge or of the runners' own events."""
    if not said:
        return judged
    refined = bootstrap.median(intervals.paired_log_ratios(said))
    return 0.0 if judged * refined < 0 else min(judged, refined, key=abs)


def scatter_of(samples: Sequence[Sample]) -> Scatter | None:
    """Return the distances of the samples from zero; `None` without samples."""
    if not samples:
        return None
    sizes = [abs(item.log_ratio) for item in samples]
    return Scatter(
        runs=len(samples),
        call_us=bootstrap.median([item.time_us for item in samples]),
        median=bootstrap.median(sizes),
        worst=max(sizes),
    )


def calibrated(samples: Sequence[Sample], *, on_gpu: bool = False) -> Fitted:
    """Return the sigma of each class of calls, and the number of its samples.

    Sigma is the smallest value for which 95 % of the samples' intervals contain 1. The variance
    within one process replicate is subtracted first. With few samples a higher quantile is used,
    by its standard error, so that new runs are covered.
    """
    if on_gpu:
        return _calibrated_on_gpu(samples)
    chosen: list[list[Sample]] = [[] for _ in calibration.DEFAULT.sigmas]
    for item in samples:
        chosen[calibration.class_of(item.time_us, item.moved_bytes)].append(item)
    sigmas = map(_sigma_or, calibration.DEFAULT.sigmas, chosen)
    return tuple(sigmas), tuple(len(own) for own in chosen)


def _calibrated_on_gpu(samples: Sequence[Sample]) -> Fitted:
    """Return the sigma of calls of 10 us, and that of calls of up to 100 us."""
    # In short calls a constant time difference dominates; it is subtracted from the others.
    short = [
        replace(item, log_ratio=item.log_ratio * scale, within=item.within * scale)
        for item in samples
        if item.time_us <= calibration.GPU_SHORT_US
        for scale in [item.time_us / calibration.GPU_AT_US]
    ]
    first = _sigma_or(calibration.GPU_DEFAULT.sigmas[0], short)
    others = [
        replace(item, log_ratio=item.log_ratio / left, within=math.hypot(*known) / left)
        for item in samples
        if item.time_us > calibration.GPU_SHORT_US
        for left in [calibration.share_left(item.time_us)]
        for short_sigma in [first * calibration.GPU_AT_US / item.time_us]
        for known in [(item.within, short_sigma, calibration.GPU_MIN_SIGMA)]
    ]
    return (first, _sigma_or(calibration.GPU_DEFAULT.sigmas[1], others)), (len(short), len(others))


def _sigma_or(wide: float, samples: Sequence[Sample]) -> float:
    if len(samples) < MIN_SAMPLES:
        return wide
    needed = [max((item.log_ratio / NORMAL_95) ** 2 - item.within**2, 0.0) for item in samples]
    level = min(LEVEL + math.sqrt(LEVEL * (1 - LEVEL) / len(needed)), 1.0)
    return max(math.sqrt(bootstrap.quantile(needed, level)), MIN_SIGMA)
