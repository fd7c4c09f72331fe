"""Fresh scores: the last correct programs of each arm are evaluated again and compared."""

from __future__ import annotations

import math
import time

import pytest

from tilewright.families.nano.problem_files import compositions_of
from tilewright.families.nano.program_slots import ProgramPlan, space
from tilewright.families.nano.program_text import render
from tilewright.problems.imported_sets import family_problems
from tilewright.records.event_log import EventLog
from tilewright.records.events import Ask, EvalSummary, RunStarted, Stepped, Turn, TurnFinished
from tilewright.rl.study.fresh_scores import FRESH, fresh_log, last_programs
from tilewright.rl.study.study_config import load_study
from tilewright.rl.study.study_folder import open_study
from tilewright.rl.study.study_log import study_log
from tilewright.rl.study.study_page import PAGE, study_pages
from tilewright.rl.synthetic_verdicts import KEY
from tilewright.rl.verdict_census import take_census
from tilewright.rl.verdict_store import VerdictStore

(PROBLEM, _) = family_problems("rehearsal")
FUSED = [
    render(program)
    for program in space(compositions_of("rehearsal")[0])
    if program.plan is ProgramPlan.FUSED
]


def summary(verdict, speedup=None):
    return EvalSummary(protocol="strict", verdict=verdict, speedup=speedup)


@pytest.fixture
def folder(tmp_path):
    """Return a study with one arm of two steps, of which the last one counts."""
    config = load_study("nano-rehearsal.yaml")
    arms = {"base": config.arms["base"]}
    changes = {"arms": arms, "directions": (), "last_steps": 1}
    made = open_study(tmp_path / "study", config.model_copy(update=changes))
    run = made.arm("base", 0) / "run"
    run.mkdir(parents=True)
    (run / "run.yaml").write_text("")
    verdicts = {
        "step00000": [summary("correct", 9.0)],
        "step00001": [
            summary("correct", 2.0),
            summary("correct", 2.0),
            summary("incorrect"),
            summary("unjudged"),
        ],
    }
    with EventLog(run) as log:
        log.append(
            RunStarted(
                kind="train",
                name="t",
                problems="p",
                protocols=("strict",),
                evaluator="0",
                device="a GPU",
            )
        )
        for step, (batch, found) in enumerate(verdicts.items(), start=1):
            for number, item in enumerate(found):
                ask = Ask(id=f"{batch}/{PROBLEM.id}.0#{number}.0", problem=PROBLEM.id)
                code = FUSED[number if batch == "step00001" else 5]
                turn = Turn(ask=ask, source="s", code=code, judgements=(item,))
                log.append(TurnFinished(turn=turn))
            log.append(Stepped(step=step, batch=batch, figures={"reward": 1.0}))
    return made


class SlowerEvaluator:
    """Finds programs faster or slower than before."""

    def evaluations(self, problem, code):  # noqa: ARG002 - one signature
        return (summary("correct", 1.5 if code == FUSED[0] else 1.1),) * 2

    def stop(self):
        pass

    def close(self):
        pass


def test_the_last_correct_programs_are_evaluated_once_and_compared(folder):
    programs = last_programs(folder)
    assert programs == [(PROBLEM, FUSED[0]), (PROBLEM, FUSED[1])]
    assert fresh_log(folder) == {}
    store = VerdictStore(folder.path / FRESH, KEY)
    take_census(store, programs, SlowerEvaluator(), until=time.monotonic() + 60)
    row = fresh_log(folder)["base, seed 0"]
    assert row["fast@1.2"] == pytest.approx(2 / 3)
    assert row["fresh_fast@1.2"] == pytest.approx(1 / 3)
    assert row["differences"] == 2
    assert row["most_log"] == pytest.approx(math.log(2.0 / 1.1))
    assert "| base, seed 0 | 0.667 | 0.333 | 2 |" in study_pages(study_log(folder, {}))[PAGE]
