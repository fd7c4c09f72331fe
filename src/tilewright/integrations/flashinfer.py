"""FlashInfer traces: solutions as candidates, and our verdicts as traces.

The schema is that of flashinfer-bench, which this file does not import.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tilewright.config import Config
from tilewright.errors import ConfigError, InfrastructureError, ProblemError
from tilewright.executors.base import Progress
from tilewright.integrations.kept_report import judge_and_keep
from tilewright.integrations.verdict_table import FLASHINFER, row_of
from tilewright.problems.candidates import make_candidate
from tilewright.problems.requests import build_request
from tilewright.problems.sets.flashinfer import TENSORS, Definition, problem_of
from tilewright.records import Candidate, EvalReport, Incorrect, SourceFile
from tilewright.records.codes import IncorrectKind
from tilewright.scoring.report_text import reason_of

LANGUAGES = ("python", "triton")
MAIN, ENTRY = "tilewright_main.py", "tilewright_run"
NOT_MEASURED = "NaN"
"""A number that the report does not hold, as flashinfer-bench writes it."""
STATUS_OF_KIND = {
    IncorrectKind.COUNT: "INCORRECT_SHAPE",
    IncorrectKind.SHAPE: "INCORRECT_SHAPE",
    IncorrectKind.DTYPE: "INCORRECT_DTYPE",
}
"""The status of an incorrect output by its kind; all other kinds are INCORRECT_NUMERICAL."""
WRAPPER = '''"""Calls a solution of FlashInfer as a function of its inputs."""

import torch
from {module} import {function} as _solution

INPUTS, OUTPUTS, AXES, PASSES_OUTPUTS = {inputs!r}, {outputs!r}, {axes!r}, {destination!r}
DTYPES = {{name: dtype for name, (_, dtype) in OUTPUTS.items()}}


{tensors}

def tilewright_run(*args):
    if not PASSES_OUTPUTS:
        return _tensors(_solution(*args), DTYPES, args)
    axes = dict(AXES)
    for shape, value in zip(INPUTS, args):
        axes.update(zip(shape or (), getattr(value, "shape", ())))
    place = next((value.device for value in args if isinstance(value, torch.Tensor)), "cpu")
    made = [
        torch.empty([axes[name] for name in shape or ()], dtype=getattr(torch, dtype), device=place)
        for shape, dtype in OUTPUTS.values()
    ]
    _solution(*args, *made)
    return made[0] if len(made) == 1 else tuple(made)
'''


@dataclass(frozen=True)
class JudgedSolution:
    """One solution on one workload: its trace, or why there is none."""

    solution: str
    workload: str
    verdict: str
    why: str
    """The reason of the verdict, in words."""
    folder: Path | None = None
    """The run folder with the report; `None`: the evaluation gave none."""
    trace: dict[str, Any] | None = None


def read_solutions(source: Path, skipped: list[str]) -> Iterator[Mapping[str, Any]]:
    """Yield the solutions of a data set; a file that cannot be used is named in `skipped`."""
    for path in sorted((source / "solutions").rglob("*.json")):
        try:
            tree = json.loads(path.read_text(encoding="utf-8"))
            language, binding = tree["spec"]["language"], tree["spec"].get("binding")
            file, _, function = tree["spec"]["entry_point"].partition("::")
            usable = file.endswith(".py") and function.isidentifier()
            named = f"{tree['name']} of {tree['definition']}"
            texts = [f"{item['path']}{item['content']}" for item in tree["sources"]]
            if not texts:
                raise ValueError("it has no sources")
        except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
            skipped.append(f"{path}: no solution: {type(error).__name__} {error}")
            continue
        if language not in LANGUAGES or not usable:
            bound = (
                f" with the binding {binding or 'tvm-ffi'}" if language in ("cpp", "cuda") else ""
            )
            skipped.append(f"{path}: {named} is in {language}{bound}, which is not judged")
            continue
        yield tree


def candidate_of(
    solution: Mapping[str, Any], definition: Definition, workload: Mapping[str, Any]
) -> Candidate:
    """Return a solution as a candidate, whose outputs are passed in if it asks for it.

    The workload sizes those axes that no input has.

    Raises:
        ConfigError: a file name leads out of the folder, or the sources do not parse.
    """
    spec = solution["spec"]
    file, _, function = spec["entry_point"].partition("::")
    tree = definition.tree
    outputs = {name: (item["shape"], item["dtype"]) for name, item in tree["outputs"].items()}
    text = WRAPPER.format(
        module=file.removesuffix(".py").replace("/", "."),
        function=function,
        inputs=[item["shape"] for item in tree["inputs"].values()],
        outputs=outputs,
        axes={**definition.constants, **workload["axes"]},
        destination=bool(spec.get("destination_passing_style", True)),
        tensors=TENSORS,
    )
    try:
        files = tuple(
            SourceFile(path=item["path"], text=item["content"]) for item in solution["sources"]
        )
    except ValueError as error:
        raise ConfigError(f"{solution['name']}: {error}") from error
    main = SourceFile(path=MAIN, text=text)
    made = make_candidate((main, *files), problem_of(definition, definition.name), entry=ENTRY)
    return made[0] if isinstance(made, tuple) else made


def judge_solution(
    solution: Mapping[str, Any],
    definition: Definition,
    settings: Config,
    progress: Progress | None = None,
) -> Iterator[JudgedSolution]:
    """Judge a solution on each workload of its definition, and yield each result at once.

    An evaluation that gives no report, for example because its judge was lost, ends no other one.
    """
    for workload in definition.workloads:
        candidate = candidate_of(solution, definition, workload)
        problem = problem_of(replace(definition, workloads=(workload,)), definition.name)
        names = (solution["name"], workload["uuid"])
        try:
            kept = judge_and_keep(build_request(candidate, problem, settings), settings, progress)
        except (InfrastructureError, ProblemError) as error:
            yield JudgedSolution(*names, "unjudged", str(error))
            continue
        report, why = kept.report, reason_of(kept.report)
        trace = trace_of(report, definition.name, workload, solution["name"], kept.folder)
        yield JudgedSolution(*names, report.verdict, why, kept.folder, trace)


def trace_of(
    report: EvalReport, definition: str, workload: Mapping[str, Any], solution: str, folder: Path
) -> dict[str, Any] | None:
    """Return the trace of a report; `None`: the schema has no place for its verdict."""
    status = status_of(report)
    if status is None:
        return None
    evaluation: dict[str, Any] = {
        "status": status,
        "environment": {
            "hardware": report.environment.device_name or report.environment.device,
            "libs": dict(report.environment.versions),
        },
        "timestamp": datetime.datetime.now(datetime.UTC).isoformat(),
        "log": f"tilewright: {report.verdict}: {reason_of(report)}; report {folder}",
    }
    if status in ("PASSED", "INCORRECT_NUMERICAL"):
        errors = [item.error_over_tolerance for item in report.cases]
        known = [value for value in errors if value is not None]
        # The report has no absolute error, and 0 would claim one.
        evaluation["correctness"] = {
            "max_relative_error": NOT_MEASURED,
            "max_absolute_error": NOT_MEASURED,
            "extra": {"error_over_tolerance": max(known)} if known else None,
        }
    if status == "PASSED":
        shown = report.comparisons[0]
        evaluation["performance"] = {
            "latency_ms": (shown.candidate_us or 0.0) / 1000,
            "reference_latency_ms": (shown.baseline_us or 0.0) / 1000,
            "speedup_factor": shown.speedup,
        }
    return {
        "definition": definition,
        "workload": dict(workload),
        "solution": solution,
        "evaluation": evaluation,
    }


def status_of(report: EvalReport) -> str | None:
    """Return the status by the published table; `None`: there is no trace."""
    status = FLASHINFER[row_of(report)].status
    if status == "INCORRECT" and isinstance(report.outcome, Incorrect):
        return STATUS_OF_KIND.get(report.outcome.kind, "INCORRECT_NUMERICAL")
    return status
