"""A run of `eval`, as a run with one turn: its folder holds a report and no event log."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tilewright.loop.answer_evaluator import summary_of_report
from tilewright.records import Problem
from tilewright.records.events import Ask, RunStarted, Turn
from tilewright.records.run_folder import REPORT, read_report


@dataclass(frozen=True)
class EvalRun:
    """The content of an event log, if there were one, and the problem."""

    begun: RunStarted
    turn: Turn
    problem: Problem


def read_eval_run(folder: Path) -> EvalRun:
    """Read the report of a run of `eval`.

    Raises:
        RecordError: the report is damaged or of a newer schema.
    """
    report = read_report(folder)
    problem = report.request.problem
    begun = RunStarted(
        kind="eval",
        name=report.request.candidate.files[0].path,
        problems=problem.id,
        protocols=(report.request.protocol,),
        evaluator=report.evaluator,
        device=report.environment.device_name,
    )
    item = summary_of_report(report, REPORT, sum(stage.wall_s for stage in report.stages))
    ask = Ask(id=f"{problem.id}#0", problem=problem.id)
    return EvalRun(begun, Turn(ask=ask, judgements=(item,)), problem)
