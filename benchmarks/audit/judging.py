"""The stage that judges: each cell is a request to the strict judge, as for any candidate."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.audit.cells import Cell
from benchmarks.audit.compilation import COMPILED, COMPILED_REFERENCE, KERNELS
from tilewright.api import build_request
from tilewright.config import load
from tilewright.errors import TilewrightError
from tilewright.executors.local import LocalExecutor
from tilewright.problems.loader import parse_problem
from tilewright.records import Baseline, Candidate, Comparison, EvalReport, EvalRequest, SourceFile
from tilewright.scoring.intervals import Interval, geometric_mean_interval
from tilewright.scoring.paired_times import paired_times
from tilewright.scoring.roofline import roofline_points

GIGABYTES = 16
SETTINGS = (
    f"eval.limits.memory_bytes={GIGABYTES << 30}",
    "eval.limits.load_s=60",
    # A cell has two baselines and up to two cases.
    "eval.timing.max_s=1.0",
    "eval.timing.max_problem_s=2.0",
    # Each replicate loads the library again; two more where a difference could be noise.
    "eval.timing.extra_replicates=1",
)


Done = Callable[[Cell, dict[str, Any]], None]
"""Takes a cell and the fields of its row."""


@dataclass(frozen=True)
class Prepared:
    """The files that the compiling stage has stored for a cell."""

    kernels: Path | None = None
    """The folder with the kernels of the candidate."""
    compiled: Path | None = None
    """The folder with the compiled reference."""


def request_of(
    cell: Cell, prepared: Prepared, folders: Sequence[str], device: str, more: Sequence[str] = ()
) -> EvalRequest:
    """Return the request for a cell; `more` are further settings."""
    first = (f"import {KERNELS}",) if prepared.kernels else ()
    imports = (*((str(prepared.kernels),) if prepared.kernels else ()), *folders)
    text = cell.candidate(first)
    candidate = Candidate(
        language=cell.library.language,
        files=(SourceFile(path="candidate.py", text=text),),
        entry="work",
        allow_imports=imports,
    )
    problem = parse_problem(cell.problem(), f"audit/{cell.problem_id}", cell.problem_id, "audit")
    settings = load(overrides=[f"eval.device={device}", *SETTINGS, *more], environ={})
    request = build_request(candidate, problem, settings)
    if prepared.compiled is None:
        return request
    baselines = (*request.baselines, _compiled_baseline(cell, prepared.compiled))
    return request.model_copy(update={"baselines": baselines})


def _compiled_baseline(cell: Cell, folder: Path) -> Baseline:
    """Return the reference under torch.compile, which loads what was compiled before.

    The judge compiles a program that is given with a baseline of this kind.
    """
    text = COMPILED_REFERENCE.format(path=str(folder / COMPILED)) + cell.problem()
    candidate = Candidate(
        language="torch",
        files=(SourceFile(path="reference.py", text=text),),
        entry="reference",
        allow_imports=(str(folder),),
    )
    return Baseline(name="compile", kind="compile", candidate=candidate)


def judge_all(
    items: Sequence[tuple[Cell, EvalRequest]],
    local: LocalExecutor,
    workers: int,
    until: float,
    done: Done,
) -> None:
    """Judge each request; `done` gets the fields of its row. None begins after `until`."""

    def one(item: tuple[Cell, EvalRequest]) -> None:
        cell, request = item
        if time.monotonic() < until:
            done(cell, judged(local, request))

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(one, items))


def judged(local: LocalExecutor, request: EvalRequest) -> dict[str, Any]:
    """Return the fields of the row for one request.

    If tilewright cannot judge against torch.compile, eager torch is the only baseline.
    """
    began = time.monotonic()
    try:
        found = fields_of(local.evaluate(request))
    except TilewrightError as error:
        message = f"{type(error).__name__}: {str(error)[:400]}"
        if len(request.baselines) > 1:
            alone = request.model_copy(update={"baselines": request.baselines[:1]})
            return judged(local, alone) | {"compile_error": message}
        found = {"verdict": "unjudged", "message": message}
    return found | {"seconds": round(time.monotonic() - began, 2)}


def fields_of(report: EvalReport) -> dict[str, Any]:
    """Return what the audit keeps of a report."""
    shares = {point.case: round(point.candidate_share, 4) for point in roofline_points(report)}
    wrong = next((case for case in report.cases if case.result == "fail"), None)
    return {
        "verdict": report.verdict,
        "message": str(getattr(report.outcome, "message", ""))[:400],
        "device": report.environment.device_name,
        "versions": report.environment.versions,
        "date": str(report.environment.host.get("date", "")),
        "against": {
            name: _against([one for one in report.comparisons if one.baseline == name])
            for name in sorted({one.baseline for one in report.comparisons})
        },
        "cases": [_case(one, shares) for one in report.comparisons],
        "coverage": report.profile.coverage if report.profile else None,
        "findings": [[item.code, item.summary] for item in report.findings],
        "labels": [item.name for item in report.labels],
        "wrong": wrong.model_dump(mode="json") if wrong else None,
        "stages": {stage.name: round(stage.wall_s, 3) for stage in report.stages},
    }


def _against(comparisons: Sequence[Comparison]) -> list[float] | None:
    """Return the geometric mean of the speed-ups over cases, with its interval."""
    intervals = [
        Interval(one.speedup, one.speedup_low, one.speedup_high)
        for one in comparisons
        if one.speedup_low is not None and one.speedup_high is not None
    ]
    if not intervals:
        return None
    made = geometric_mean_interval(intervals)
    return [round(value, 4) for value in (made.estimate, made.low, made.high)]


def _case(one: Comparison, shares: dict[str, float]) -> dict[str, Any]:
    times = paired_times(one)
    return {
        "case": one.case,
        "baseline": one.baseline,
        "speedup": [one.speedup, one.speedup_low, one.speedup_high],
        "candidate_us": round(times.candidate_us, 3),
        "baseline_us": round(times.baseline_us, 3),
        "candidate_bytes": one.candidate.peak_bytes,
        "baseline_bytes": one.baseline_timing.peak_bytes,
        "roofline": shares.get(one.case) if one.baseline == "eager" else None,
    }
