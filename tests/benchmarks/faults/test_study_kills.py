"""The bar of killed studies: which figures it compares, and the repetitions that it counts."""

from __future__ import annotations

import copy

import yaml

from benchmarks.faults.study_kills import comparable, repeated, small_study
from tilewright.config import dump
from tilewright.records.event_log import EventLog
from tilewright.records.events import Ask, EvalSummary, Stepped, Turn, TurnFinished
from tilewright.rl.study.stages import check_study
from tilewright.rl.study.study_config import load_study
from tilewright.rl.study.study_folder import open_study
from tilewright.rl.training_config import TrainConfig

LOG = {
    "seconds": {"gate": 3.0},
    "gate": [],
    "arms": {"base": {"0": {"figures": [{"reward": 1.0, "seconds/update": 2.0}], "best": {}}}},
}


def test_only_time_is_left_out():
    other = copy.deepcopy(LOG)
    other["seconds"] = {}
    figures = other["arms"]["base"]["0"]["figures"][0]
    figures["seconds/update"] = 9.0
    assert comparable(other) == comparable(LOG)
    figures["reward"] = 1.5
    assert comparable(other) != comparable(LOG)


def test_repeated_turns_and_steps_are_counted(tmp_path):
    run = tmp_path / "arms" / "base-0" / "run"
    run.mkdir(parents=True)
    (run / "run.yaml").write_text(dump(TrainConfig()))
    found = EvalSummary(protocol="strict", verdict="correct")
    turn = TurnFinished(turn=Turn(ask=Ask(id="step00000/p#0.0", problem="p"), judgements=(found,)))
    step = Stepped(step=1, batch="step00000", figures={})
    with EventLog(run) as log:
        log.extend([turn, step])
    assert repeated(tmp_path) == 0
    with EventLog(run) as log:
        log.extend([turn, step, step])
    assert repeated(tmp_path) == 3


def test_the_small_study_can_be_trained(tmp_path):
    (tmp_path / "small.yaml").write_text(yaml.safe_dump(small_study()))
    check_study(open_study(tmp_path / "study", load_study(str(tmp_path / "small.yaml"))))
