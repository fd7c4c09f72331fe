"""Evaluation by a census: the answer is one of the recorded measurements of a program, resampled.

No device is used. A trial takes a random one of the program's recorded measurements. It moves the
speed-up by a random error of the size that the measurement states.
"""

from __future__ import annotations

import math
import random
import threading
from collections import Counter
from pathlib import Path

from tilewright.errors import ConfigError
from tilewright.executors.base import Executor, Progress, ignore_progress
from tilewright.records import (
    Comparison,
    Correct,
    EvalReport,
    EvalRequest,
    Failed,
    StageRecord,
    Timing,
)
from tilewright.records.base import digest_text
from tilewright.records.census import (
    Census,
    CensusHeader,
    CensusRow,
    MeasuredCase,
    read_census,
    source_digest,
)
from tilewright.records.codes import FailureReason, Stage
from tilewright.scoring.intervals import Interval, decide

PREFIX = "census:"
"""Beginning of the setting `executor`; the path of the file follows."""
NORMAL_95 = 1.959964
"""Half-width of a 95 % interval in standard errors, without unit."""
SAMPLES_PER_BLOCK = 2
"""Timed calls of an implementation in an ABBA block."""
_trials: Counter[tuple[str, str]] = Counter()
_lock = threading.Lock()


class CensusExecutor(Executor):
    """Answers from a census file. Lifetime: until `close`. Safe to use from several threads.

    A trial's random values follow from the seed of the request. Without one they follow from the
    file, the program, and the number of its earlier trials in this process. Two trials of a process
    differ, also those of two executors.

    Raises:
        ConfigError: the setting names no file.
        RecordError: the file is no census.
    """

    def __init__(self, path: Path) -> None:
        if path.is_dir() or not path.exists():
            raise ConfigError(f"executor {PREFIX}{path}: no such file; make one with {COMMAND}")
        self._census = read_census(path)

    @property
    def device_model(self) -> str:
        """Return the model of the device on which the programs were judged."""
        return self._census.header.environment.device_name

    def evaluate(
        self,
        request: EvalRequest,
        progress: Progress = ignore_progress,  # noqa: ARG002 - nothing takes any time
        *,
        checks: tuple[str, ...] | None = None,  # noqa: ARG002 - the census ran all checks
    ) -> EvalReport:
        """Return the report of a simulated trial.

        Raises:
            ConfigError: the census has another problem, or was made by other rules.
        """
        check_fits(request, self._census.header)
        program = source_digest(request.candidate.files[0].text)
        rows = self._census.rows.get(program, ())
        if len(request.candidate.files) > 1:
            rows = ()
        seed = request.seed or next_seed(self._census.digest, program)
        report = unknown_report(self._census, request, seed)
        if rows:
            generator = random.Random(f"{seed} {program}")
            row = generator.choice(rows)
            report = resampled(row, self._census, request, seed, generator.gauss(0.0, 1.0))
        return report

    def close(self) -> None:
        """Do nothing."""

    def kill(self) -> None:
        """Do nothing: no evaluation takes any time."""


COMMAND = "python -m benchmarks.search.census"


def check_fits(request: EvalRequest, header: CensusHeader) -> None:
    """Refuse a request whose answer the census cannot hold.

    Raises:
        ConfigError: the message names the first difference.
    """
    baselines = tuple(item.name for item in request.baselines)
    reference = source_digest(request.problem.source.text)
    for what, asked, recorded in (
        ("problem", request.problem.id, header.problem),
        ("source of the problem", reference[:12], header.reference[:12]),
        ("protocol", request.protocol, header.protocol),
        ("baselines", baselines, header.baselines),
        ("rules", request.rules, header.rules),
    ):
        if asked != recorded:
            raise ConfigError(
                f"the census of {header.space} cannot answer: its {what} is {recorded!r}, and the "
                f"request has {asked!r}; use the same, or another executor"
            )


def next_seed(census: str, program: str) -> str:
    """Return the seed of the next trial of a program in this process: 32 hexadecimal digits."""
    with _lock:
        number = _trials[census, program]
        _trials[census, program] += 1
    return digest_text(f"{census} {program} {number}")[:32]


def resampled(
    row: CensusRow, census: Census, request: EvalRequest, seed: str, deviation: float
) -> EvalReport:
    """Return the report of a trial that deviates from a measurement by so many standard errors."""
    factor = 1.0
    if row.low is not None and row.high is not None:
        factor = math.exp(deviation * math.log(row.high / row.low) / (2 * NORMAL_95))
    timed = row.speedup is not None and isinstance(row.outcome, Correct)
    header = census.header
    cases = [comparison_of(item, factor, header) for item in row.cases] if timed else []
    return EvalReport(
        verdict=row.outcome.verdict,
        speedup=_times(row.speedup, factor),
        speedup_low=_times(row.low, factor),
        speedup_high=_times(row.high, factor),
        outcome=row.outcome,
        findings=getattr(row.outcome, "findings", ()),
        labels=row.labels,
        comparisons=tuple(cases),
        profile=row.profile,
        stages=(StageRecord(name=Stage.TOTAL, wall_s=row.seconds, detail="census"),),
        environment=header.environment,
        seed=seed,
        request=request,
        evaluator=header.evaluator,
    )


def comparison_of(case: MeasuredCase, factor: float, header: CensusHeader) -> Comparison:
    """Return a comparison whose speed-up is the recorded one times a factor.

    A census keeps no interval of a time, so the interval of the speed-up is split between both.
    """
    speedup, root = case.speedup * factor, math.sqrt(factor)
    low, high = _times(case.low, factor), _times(case.high, factor)
    below = math.sqrt(speedup / (low or speedup))
    above = math.sqrt((high or speedup) / speedup)
    times = [
        Timing(
            median_us=median_us,
            low_us=median_us / above,
            high_us=median_us * below,
            samples=SAMPLES_PER_BLOCK * case.blocks,
            method=header.method,
        )
        for median_us in (case.candidate_us / root, case.baseline_us * root)
    ]
    return Comparison(
        case=case.case,
        baseline=case.baseline,
        candidate=times[0],
        baseline_timing=times[1],
        baseline_us=times[1].median_us,
        candidate_us=times[0].median_us,
        speedup=speedup,
        speedup_low=low,
        speedup_high=high,
        blocks=case.blocks,
        conclusion=decide(Interval(speedup, low, high)) if low and high else "no interval",
    )


def unknown_report(census: Census, request: EvalRequest, seed: str) -> EvalReport:
    """Return the report of a candidate that is no program of the census: it failed."""
    space, known, wanted = census.header.space, len(census.rows), census.header.programs
    message = f"this code is no program of the space {space}, so the census has no verdict on it"
    if known < wanted:
        message += f", or was not judged yet: the census has {known} of {wanted} programs"
    outcome = Failed(stage=Stage.BUILD, reason=FailureReason.BUILD, message=message)
    return EvalReport(
        verdict=outcome.verdict,
        outcome=outcome,
        stages=(StageRecord(name=Stage.TOTAL, wall_s=0.0, detail="census"),),
        environment=census.header.environment,
        seed=seed,
        request=request,
        evaluator=census.header.evaluator,
    )


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor
