"""GPU MODE's bot: a submission on a task of the user's clone, and the text that the bot prints."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from tilewright.config import Config
from tilewright.integrations.kept_report import KeptReport, judge_and_keep
from tilewright.integrations.verdict_table import GPU_MODE, Ours, row_of
from tilewright.problems.requests import build_request
from tilewright.problems.sets.gpumode import GpuModeTask, licence_of, problem_of, read_task
from tilewright.records import EvalReport, Failed, Problem, Rejected
from tilewright.scoring.report_text import reason_of

Mode = Literal["test", "benchmark", "leaderboard"]
RUNS: dict[Mode, tuple[Mode, ...]] = {
    "test": ("test",),
    "benchmark": ("benchmark",),
    "leaderboard": ("test", "leaderboard"),
}
"""The runs of each mode. The benchmark and the ranked run measure the same sizes here."""
SIZES: dict[Mode, str] = {"test": "tests", "benchmark": "benchmarks", "leaderboard": "benchmarks"}
GOOD, BAD, CLOCK = "\N{WHITE HEAVY CHECK MARK}", "\N{CROSS MARK}", "\N{STOPWATCH}"
NAMES: dict[Mode, tuple[str, str, str]] = {
    "test": ("Testing successful", "Testing failed", "Running tests failed"),
    "benchmark": ("Benchmarking successful", "Benchmarking failed", "Running benchmarks failed"),
    "leaderboard": (
        *("Leaderboard run successful", "Leaderboard run failed"),
        "Running leaderboard failed",
    ),
}
TIMEOUTS: dict[Mode, str] = {
    "test": "test_timeout",
    "benchmark": "benchmark_timeout",
    "leaderboard": "ranked_timeout",
}
VALIDATE_FAIL, TIMED_OUT = 112, 114
"""Exit codes of the bot's harness: a wrong output, and a timeout."""


@dataclass(frozen=True)
class PopcornRun:
    """One run of a submission, and its report."""

    mode: Mode
    problem: Problem
    kept: KeptReport


def clone_of(folder: Path) -> Path:
    """Return the clone that holds a task: the nearest folder with `.git`, else the folder above."""
    folder = folder.absolute()
    return next((item for item in folder.parents if (item / ".git").exists()), folder.parent)


def judge_submission(
    submission: Path,
    folder: Path,
    mode: Mode,
    settings: Config,
    progress: Callable[..., None] | None = None,
) -> Iterator[PopcornRun]:
    """Judge a submission in each run of a mode, until one does not pass.

    Raises:
        ProblemError: the task cannot be read.
        ConfigError: the submission cannot be read.
    """
    root = clone_of(folder)
    task = read_task(folder.absolute(), root)
    for one in RUNS[mode]:
        problem = _problem(task, one, root)
        kept = judge_and_keep(
            build_request(submission, problem, _limited(settings, task, one)), settings, progress
        )
        yield PopcornRun(one, problem, kept)
        if not GPU_MODE[row_of(kept.report)].passes:
            return


def _problem(task: GpuModeTask, mode: Mode, root: Path) -> Problem:
    chosen = {name: sizes for name, sizes in task.sizes.items() if name == SIZES[mode]}
    sizes = {name: chosen.get(name, ()) for name in task.sizes}
    part = replace(task, sizes=sizes)
    return problem_of(
        part, f"gpumode/{task.folder.parent.name}/{task.folder.name}", licence_of(root)
    )


def _limited(settings: Config, task: GpuModeTask, mode: Mode) -> Config:
    """Return the settings with the task's timeout, and without timing in a test."""
    section = settings.eval
    timing = section.timing.model_copy(update={"enabled": mode != "test"})
    least = task.timeouts_s.get(TIMEOUTS[mode], section.limits.total_timeout_s)
    total = max(least, section.limits.total_timeout_s)
    limits = section.limits.model_copy(update={"total_timeout_s": total})
    return settings.with_eval(timing=timing, limits=limits)


def lines_of(runs: Sequence[PopcornRun], ranking_by: str) -> Iterator[str]:
    """Yield the lines of the bot: its short report, then the log of the last run."""
    for run in runs:
        good, bad, broken = NAMES[run.mode]
        cell = GPU_MODE[row_of(run.kept.report)]
        if cell.exit_code is None:
            yield f"no result: {reason_of(run.kept.report)}"
        elif cell.passes:
            yield f"{GOOD} {good}"
        elif cell.exit_code == VALIDATE_FAIL:
            yield f"{BAD} {bad}"
        elif row_of(run.kept.report) is Ours.FAILED_BUILD:
            yield f"{BAD} Compilation failed"
        else:
            why = "timeout" if cell.exit_code == TIMED_OUT else f"internal error {cell.exit_code}"
            yield f"{BAD} {broken} ({why})"
    if runs and (log := list(_log(runs[-1], ranking_by))):
        yield ""
        yield from log


def _log(run: PopcornRun, ranking_by: str) -> Iterator[str]:
    report = run.kept.report
    if GPU_MODE[row_of(report)].exit_code is None:
        return
    if isinstance(report.outcome, Failed | Rejected):
        yield f"> {reason_of(report)}"
        return
    worst = {item.case: item.detail for item in report.cases if item.result == "fail"}
    passed = {item.case for item in report.cases if item.result == "pass"} - set(worst)
    shown = {item.case: item for item in report.comparisons}
    for case in run.problem.cases:
        spec = "; ".join(
            f"{name}: {value}" for name, value in case.params.items() if name != "place"
        )
        if case.name in worst:
            yield f"{BAD} {spec}"
            yield f"> {worst[case.name] or reason_of(report)}"
        elif run.mode == "test" and case.name in passed:
            yield f"{GOOD} {spec}"
        elif (found := shown.get(case.name)) is not None and found.candidate_us is not None:
            yield spec
            yield f" {CLOCK} {time_text(found.candidate_us * 1000)}"
    if run.mode == "leaderboard" and (score := score_ns(report, ranking_by)) is not None:
        yield ""
        yield f"score ({ranking_by}): {time_text(score)}"


def score_ns(report: EvalReport, ranking_by: str) -> float | None:
    """Return the time by which a task ranks, in nanoseconds; `None`: not every size has one."""
    times = [item.candidate_us for item in report.comparisons]
    known = [value * 1000 for value in times if value is not None]
    if not known or len(known) < len(times):
        return None
    if ranking_by == "geom":
        return math.exp(math.fsum(map(math.log, known)) / len(known))
    return math.fsum(known) / len(known) if ranking_by == "mean" else known[-1]


def time_text(nanoseconds: float) -> str:
    """Return a time with the unit that the bot chooses."""
    scale, unit = (1.0, "ns")
    if nanoseconds > 2_000_000:
        scale, unit = 1_000_000.0, "ms"
    elif nanoseconds > 2000:
        scale, unit = 1000.0, "\N{MICRO SIGN}s"
    value = nanoseconds / scale
    return f"{value:.2f} {unit}" if value < 10 else f"{value:.1f} {unit}"
