"""KernelBench's `eval_kernel_against_ref`: its arguments and its result, our verdict.

The evaluation follows KernelBench's published rules (`official`) unless `protocol="strict"` is
given. KernelBench is https://github.com/ScalingIntelligence/KernelBench; none of it is used here.
"""

from __future__ import annotations

import os
import statistics
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict

from tilewright.api import with_arguments
from tilewright.config import LOCAL, Config, Given, settings_of
from tilewright.errors import ConfigError, NoVerdict, suggestion
from tilewright.evaluator.devices.devices import gpu_names
from tilewright.integrations.kept_report import KeptReport, judge_and_keep
from tilewright.integrations.verdict_table import TABLE, KernelBenchCell, row_of
from tilewright.problems.loader import parse_problem
from tilewright.problems.requests import build_request
from tilewright.problems.sets.kernelbench import TIGHT
from tilewright.records import EvalReport, Failed, Incorrect, Problem, Rejected
from tilewright.records.base import digest_text
from tilewright.scoring.report_text import reason_of

NOT_TIMED = -1.0
"""KernelBench's value of a time that was not measured. It is written here and never read."""
CORRECT_TRIALS, TIMED_TRIALS = 5, 100
"""Inputs that are compared and calls that are timed by the published rules."""
BACKENDS = ("cuda", "triton")
OTHER_BACKENDS = ("cute", "hip", "thunderkittens", "tilelang")
FLOAT32 = ("fp32", "float32", "torch.float32")
PROTOCOLS = ("official", "strict")


@dataclass(frozen=True)
class Arguments:
    """The arguments of KernelBench's function that tilewright may be unable to honour."""

    seed_num: int = 42
    num_correct_trials: int = 1
    num_perf_trials: int = 10
    timing_method: str = "cuda_event"
    verbose: bool = False
    build_dir: str | os.PathLike[str] | None = None


REASONS: dict[str, str] = {
    "seed_num": "a known seed makes inputs predictable, so the evaluator draws a secret one",
    "num_correct_trials": "`official` compares outputs for 5 inputs; `strict` chooses the number",
    "num_perf_trials": "`official` times 100 calls; `strict` times until the interval is narrow",
    "timing_method": "the judge's clock measures: the host's on a CPU, CUDA events on a GPU",
    "verbose": "nothing is printed; the report lists the stages",
    "build_dir": "extensions are built in the sandbox and cached below `home`",
}
"""Why the value of an argument is not honoured, by the argument's name."""


class KernelExecResult(BaseModel):
    """KernelBench's result. Times are milliseconds; -1 is KernelBench's value for none."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    compiled: bool = False
    correctness: bool = False
    metadata: dict[str, Any] = {}
    runtime: float = NOT_TIMED
    runtime_stats: dict[str, Any] = {}
    ref_runtime: float = NOT_TIMED
    ref_runtime_stats: dict[str, Any] = {}


def eval_kernel_against_ref(  # noqa: PLR0913, D417 - KernelBench's arguments, in its order
    original_model_src: str,
    custom_model_src: str,
    seed_num: int = Arguments.seed_num,
    num_correct_trials: int = Arguments.num_correct_trials,
    num_perf_trials: int = Arguments.num_perf_trials,
    measure_performance: bool = False,
    timing_method: str = Arguments.timing_method,
    verbose: bool = Arguments.verbose,
    build_dir: str | os.PathLike[str] | None = None,
    device: object = None,
    backend: str = "cuda",
    precision: object = "fp32",
    check_for_excessive_speedup: bool = True,
    excessive_speedup_threshold: float = 10,
    *,
    protocol: str = "official",
    config: Given = None,
) -> KernelExecResult:
    """Judge `ModelNew` of a candidate against `Model`, and return KernelBench's result.

    `metadata["not_honoured"]` names each argument whose value has no effect (`REASONS`). A value
    other than KernelBench's default also causes a warning.

    Args:
        device: an index, a name or a `torch.device`; `None`: that of `config`, or else the GPU if
            there is one.
        backend: `cuda` or `triton`; the language is detected for both.
        precision: `torch.float32`, or a name of it.
        excessive_speedup_threshold: a larger speed-up is excessive, which the metadata states.
        protocol: `official` (KernelBench's published rules) or `strict` (ours).
        config: settings, as for `tilewright.evaluate`.

    Raises:
        ConfigError: an argument would give the result another meaning.
        ProblemError: `original_model_src` is no problem, or cannot be used.
        NoVerdict: the candidate is unjudged, so that no field of the result would be true.
        InfrastructureError: tilewright itself failed twice.
    """
    _check(backend, precision, protocol)
    asked = Arguments(
        seed_num, num_correct_trials, num_perf_trials, timing_method, verbose, build_dir
    )
    settings = _settings(config, device, protocol, timed=measure_performance)
    request = build_request(as_source(custom_model_src), _problem(original_model_src), settings)
    ignored = not_honoured(asked, settings)
    for name, why in ignored.items():
        if getattr(asked, name) != getattr(Arguments(), name):
            warnings.warn(f"{name}={getattr(asked, name)!r}: {why}", stacklevel=2)
    kept = judge_and_keep(request, settings)
    threshold = excessive_speedup_threshold if check_for_excessive_speedup else None
    return result_of(kept, ignored, threshold)


def as_source(text: str) -> str:
    """Return source text that no path or address can be mistaken for: it ends a line."""
    return text if text.endswith("\n") else f"{text}\n"


def not_honoured(asked: Arguments, settings: Config) -> dict[str, str]:
    """Return the arguments whose values have no effect, each with the reason."""
    official = settings.eval.protocol == "official"
    honoured = {
        "num_correct_trials": official and asked.num_correct_trials == CORRECT_TRIALS,
        "num_perf_trials": official and asked.num_perf_trials == TIMED_TRIALS,
        "timing_method": asked.timing_method == "cuda_event" and settings.eval.device != "cpu",
        "verbose": not asked.verbose,
        "build_dir": asked.build_dir is None,
    }
    if not settings.eval.timing.enabled:
        honoured |= {"num_perf_trials": True, "timing_method": True}
    return {name: why for name, why in REASONS.items() if not honoured.get(name, False)}


def result_of(
    kept: KeptReport, ignored: Mapping[str, str], threshold: float | None
) -> KernelExecResult:
    """Return KernelBench's result for a report.

    `threshold` is the speed-up from which on it is excessive; `None`: `ref_runtime` is not set.

    Raises:
        NoVerdict: the candidate is unjudged.
    """
    report = kept.report
    row = row_of(report)
    cell = TABLE[row].kernelbench
    if cell.raises:
        raise NoVerdict(
            f"{report.request.problem.id} is unjudged: {reason_of(report)}; it is no result of "
            f"the candidate, so count it nowhere; report {kept.folder}"
        )
    metadata = _metadata(kept, cell) | {"not_honoured": dict(ignored)}
    fields: dict[str, Any] = {"compiled": cell.compiled, "correctness": cell.correctness}
    if cell.timed:
        runtime, reference = (_statistics(report, calls) for calls in ((1, 2), (0, 3)))
        fields |= {"runtime": runtime["mean"], "runtime_stats": runtime}
        if threshold is not None:
            fields |= {"ref_runtime": reference["mean"], "ref_runtime_stats": reference}
            if report.speedup is not None and report.speedup > threshold:
                metadata["excessive_speedup"] = True
    return KernelExecResult(**fields, metadata=metadata)


def _check(backend: str, precision: object, protocol: str) -> None:
    """Refuse values whose result would mean something else than the caller believes."""
    name = str(backend).lower()
    if name not in BACKENDS:
        known = " or ".join(BACKENDS)
        hint = "" if name in OTHER_BACKENDS else suggestion(name, BACKENDS)
        raise ConfigError(f"backend={backend!r} is not supported; {hint or f'give {known}'}")
    if str(precision) not in FLOAT32:
        raise ConfigError(
            f"precision={precision!r}: inputs and weights keep the dtypes of the problem's source; "
            "give torch.float32, and write other dtypes into the source"
        )
    if protocol not in PROTOCOLS:
        raise ConfigError(f"protocol={protocol!r}: give {' or '.join(PROTOCOLS)}")


def _settings(config: Given, device: object, protocol: str, *, timed: bool) -> Config:
    settings = settings_of(config)
    timing = settings.eval.timing.model_copy(update={"enabled": timed})
    return with_arguments(
        settings,
        device=_device(device, settings, chosen=config is not None),
        protocol=protocol,
        baselines="eager",
        timing=timing,
    )


def _device(device: object, settings: Config, *, chosen: bool) -> str:
    if isinstance(device, int):
        return f"cuda:{device}"
    if device is not None:
        return str(device)
    if not chosen and settings.executor == LOCAL and settings.eval.device == "cpu" and gpu_names():
        return "cuda"
    return settings.eval.device


def _problem(source: str) -> Problem:
    name = f"given/kernelbench-{digest_text(source)[:8]}"
    problem = parse_problem(source, name, "ModelNew", "original_model_src")
    if problem.kind != "module":
        raise ConfigError(
            "original_model_src defines functions, and KernelBench's problems define `Model` and "
            "`get_inputs`; judge it with tilewright.evaluate"
        )
    return problem.model_copy(update={"tolerance": problem.tolerance or TIGHT})


def _metadata(kept: KeptReport, cell: KernelBenchCell) -> dict[str, Any]:
    report = kept.report
    compared = [item.result == "pass" for item in report.cases if item.result != "skipped"]
    found: dict[str, Any] = {
        "hardware": report.environment.device_name,
        "device": report.environment.device,
        "report": str(kept.folder / "report.json"),
        "evaluator": f"tilewright {report.evaluator}",
        "protocol": report.request.protocol,
        "verdict": report.verdict,
        "speedup": report.speedup,
        "speedup_low": report.speedup_low,
        "speedup_high": report.speedup_high,
        "findings": [item.code for item in report.findings],
        "labels": [item.name for item in report.labels],
    }
    if compared:
        found["correctness_trials"] = f"({sum(compared)} / {len(compared)})"
    if cell.metadata:
        found |= {cell.metadata: reason_of(report), f"{cell.metadata}_name": _code(report)}
    return found


def _code(report: EvalReport) -> str:
    match report.outcome:
        case Incorrect(kind=code) | Failed(reason=code):
            return str(code)
        case Rejected(findings=findings):
            return findings[0].code
        case _:
            return report.verdict


def _statistics(report: EvalReport, calls: tuple[int, int]) -> dict[str, Any]:
    """Return KernelBench's statistics, in milliseconds, of two places of each ABBA block."""
    name = report.request.baselines[0].name
    times = [
        block[place] / 1e3
        for item in report.comparisons
        if item.baseline == name
        for block in item.raw_us
        for place in calls
    ]
    return {
        "mean": statistics.fmean(times),
        "std": statistics.pstdev(times),
        "min": min(times),
        "max": max(times),
        "num_trials": len(times),
        "hardware": report.environment.device_name,
        "device": report.environment.device,
    }
