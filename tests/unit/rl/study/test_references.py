"""References without learning, counted from event logs."""

from __future__ import annotations

import pytest

from tilewright.config import dump
from tilewright.records.event_log import EventLog
from tilewright.records.events import Ask, EvalSummary, Turn, TurnFinished
from tilewright.rl.study.references import (
    best_so_far,
    bests_of,
    judged_turns,
    pass_at,
    reference_log,
)
from tilewright.rl.study.study_config import ArmSection, load_study
from tilewright.rl.study.study_folder import open_study
from tilewright.rl.training_config import TrainConfig


def turn(batch, problem, number, speedup, verdict="correct"):
    ask = Ask(id=f"{batch}/{problem}#{number}.0", problem=problem)
    found = EvalSummary(protocol="strict", verdict=verdict, speedup=speedup)
    return Turn(ask=ask, judgements=(found,))


TURNS = [
    turn("step00000", "p", 0, 2.0),
    turn("step00000", "q", 0, None, "incorrect"),
    turn("step00001", "p", 0, 1.5),
    turn("step00001", "q", 0, 4.0),
]


def write_run(place, turns):
    run = place / "run"
    run.mkdir(parents=True)
    (run / "run.yaml").write_text(dump(TrainConfig()))
    with EventLog(run) as log:
        log.extend(TurnFinished(turn=item) for item in turns)


def test_the_best_rises_over_the_batches():
    assert best_so_far(TURNS) == [1.0, 3.0]
    assert bests_of(TURNS) == {"p": 2.0, "q": 4.0}
    assert best_so_far([]) == []


def test_pass_at_16_is_that_of_first_turns():
    right = [turn("step00000", "p", number, 1.0) for number in range(16)]
    wrong = [turn("step00000", "q", number, None, "incorrect") for number in range(16)]
    assert pass_at([*right, *wrong]) == pytest.approx(0.5)
    assert pass_at(right[:15]) is None


def test_turns_that_were_scored_or_are_unjudged_do_not_count(tmp_path):
    more = [turn("score00001", "p", 0, 9.0), turn("step00001", "p", 1, None, "unjudged")]
    write_run(tmp_path, [*TURNS, *more])
    assert judged_turns(tmp_path) == TURNS
    assert judged_turns(tmp_path / "nothing") == []


def test_the_reference_is_cut_at_the_programs_of_the_arm(tmp_path):
    arms = {"base": ArmSection(seeds=2), "still": ArmSection()}
    changes = {"arms": arms, "reference": "still", "directions": ()}
    folder = open_study(tmp_path, load_study("nano-rehearsal.yaml").model_copy(update=changes))
    write_run(folder.arm("still", 0), TURNS)
    write_run(folder.arm("base", 0), TURNS[:3])
    write_run(folder.arm("base", 1), [*TURNS, turn("step00002", "p", 0, 9.0)])
    found = reference_log(folder)
    assert found["base"]["0"] == {"programs": 3, "best": {"p": 2.0}, "pass@16": None}
    assert found["base"]["1"]["programs"] == 4
    assert found["still"]["0"]["best"] == {"p": 2.0, "q": 4.0}


def test_a_study_without_such_an_arm_has_no_reference(tmp_path):
    assert reference_log(open_study(tmp_path, load_study("nano-rehearsal.yaml"))) == {}
