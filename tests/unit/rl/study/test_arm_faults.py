"""Faults of an arm: its settings and missing verdicts stop it, and the machine never does."""

from __future__ import annotations

import pytest

from tilewright.config import dump
from tilewright.records.event_log import EventLog
from tilewright.records.events import Ask, EvalSummary, Turn, TurnFinished
from tilewright.rl.study.arm_faults import (
    failures_of,
    record_failure,
    stopped_because,
)
from tilewright.rl.training_config import TrainConfig

SAMPLING = {"prompts": 2, "rollouts": 5, "turns": 2}
SMALL = TrainConfig(overrides={"sampling": SAMPLING})
"""A batch has 20 turns, of which one may be unjudged."""


def run_with(place, unjudged, config=SMALL, batch="step00001"):
    """Write the run of an arm whose newest batch has so many unjudged turns."""
    run = place / "run"
    run.mkdir(parents=True)
    (run / "run.yaml").write_text(dump(config))
    with EventLog(run) as log:
        log.extend(turn("step00000", number, "unjudged") for number in range(9))
        log.extend(turn(batch, number, "correct") for number in range(20 - unjudged))
        log.extend(turn(batch, number, "unjudged") for number in range(20 - unjudged, 20))


def turn(batch, number, verdict):
    ask = Ask(id=f"{batch}/{number}", problem="p")
    found = EvalSummary(protocol="strict", verdict=verdict)
    return TurnFinished(turn=Turn(ask=ask, judgements=(found,)))


@pytest.mark.parametrize("status", [-9, -15, 1, 4, 5, 6])
def test_the_machine_stops_no_arm_however_often_it_fails(tmp_path, status):
    for _ in range(3):
        assert not record_failure(tmp_path, status, "the last line")
    assert not stopped_because(tmp_path)
    assert len(failures_of(tmp_path)) == 3


def test_wrong_settings_stop_an_arm_with_their_reason(tmp_path):
    record_failure(tmp_path, -9, "step 3")
    assert record_failure(tmp_path, 2, "mismatch rejection keeps nothing")
    assert stopped_because(tmp_path) == "mismatch rejection keeps nothing"


def test_an_arm_whose_run_another_process_has_goes_on_later(tmp_path):
    run_with(tmp_path, 0)
    with EventLog(tmp_path / "run"):
        assert not record_failure(tmp_path, 2, "another process works on this run")
    assert not stopped_because(tmp_path)
    assert record_failure(tmp_path, 2, "mismatch rejection keeps nothing")


def test_the_signal_of_a_killed_arm_is_named(tmp_path):
    record_failure(tmp_path, -9, "step 3")
    assert failures_of(tmp_path)[0]["reason"] == "signal 9 ended it; last line: step 3"


@pytest.mark.parametrize(("unjudged", "stops"), [(1, False), (2, True)])
def test_too_many_unjudged_turns_of_the_newest_batch_stop_an_arm(tmp_path, unjudged, stops):
    run_with(tmp_path, unjudged)
    assert record_failure(tmp_path, 4, "2 of 20 turns of a batch could not be judged") is stops


def test_the_batches_of_held_out_problems_count_too(tmp_path):
    changes = {"data": {"problems": "nano/train", "held_out": "nano/rehearsal"},
               "overrides": {"evaluation": {"samples": 5, "turns": 2}}}  # fmt: skip
    run_with(tmp_path, 2, TrainConfig.model_validate(changes), "score00001")
    assert record_failure(tmp_path, 4, "2 of 20 turns of a batch could not be judged")


def test_a_lost_device_stops_no_arm(tmp_path):
    """Without its GPU the judge leaves every turn unjudged."""
    settings = {"settings": {"eval": {"device": "cuda:77"}}, "overrides": {"sampling": SAMPLING}}
    run_with(tmp_path, 20, TrainConfig.model_validate(settings))
    assert not record_failure(tmp_path, 4, "20 of 20 turns of a batch could not be judged")
