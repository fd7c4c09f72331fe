"""Gated calls with a scripted judge and runner: the requests that each gets, and their order."""

from __future__ import annotations

import pytest

from tests.scripted_gpu import LATE, ScriptedRunner, ScriptedSample, scripted
from tilewright.evaluator.judge_client.messages import FinishTimed
from tilewright.evaluator.runners.gpu_runner import (
    CALIBRATION_CALLS,
    COLD_CALL_FACTOR,
    QUEUE_TIMEOUT_S,
    SETTLING_CALLS,
    gated_call,
    measure_clock_excess,
)
from tilewright.evaluator.runners.host_call import EMPTY_CALL
from tilewright.evaluator.runners.messages import EvaluationEnded


def test_the_first_call_of_a_case_has_more_time():
    runner = ScriptedRunner([])
    usual = runner.call_timeout_s
    runner.expect_case("one")
    assert runner.call_timeout_s == COLD_CALL_FACTOR * usual
    runner.call_timeout_s = usual  # as after its result
    runner.expect_case("one")
    assert runner.call_timeout_s == usual
    runner.expect_case("two")
    assert runner.call_timeout_s == COLD_CALL_FACTOR * usual


def test_a_call_is_queued_before_its_gate_opens_and_collected_before_its_check():
    made = scripted()
    runner = ScriptedRunner(made.log, self_reported_us=900.0)
    fields = ScriptedSample().call_fields(0)
    call = gated_call(made.judge, runner, fields, finish=FinishTimed("d"), keep=True)
    assert made.steps() == [
        *("queue_call", ("arm", 7, False), "collect_outputs", "finish_timed"),
        "result",
    ]
    assert made.asked("collect_outputs")["addresses"] == [4096, 4097]
    assert made.asked("queue_call")["keep"] == made.asked("collect_outputs")["sample"] == "d"
    assert made.asked("finish_timed")["keep"] is False
    assert (call.seconds, call.early, call.result.self_reported_us) == (0.001, False, 900.0)
    assert 0 <= call.queued_s < 1


def test_a_call_that_waits_for_the_device_gets_an_open_gate_and_is_frozen():
    made = scripted()
    runner = ScriptedRunner(made.log, queued_s=2 * QUEUE_TIMEOUT_S)
    assert gated_call(made.judge, runner, EMPTY_CALL).early
    assert made.steps() == [
        *("queue_call", ("arm", 7, False), "open_gate", "freeze"),
        *("collect_outputs", "resume", "finish_timed", "result"),
    ]


def test_a_gate_that_is_open_from_the_start_marks_no_call_as_early():
    made = scripted()
    runner = ScriptedRunner(made.log, queued_s=2 * QUEUE_TIMEOUT_S)
    assert not gated_call(made.judge, runner, EMPTY_CALL, queued=False).early
    steps = ["queue_call", "open_gate", ("arm", 7, False), "collect_outputs", "finish_timed"]
    assert made.steps() == [*steps, "result"]


@pytest.mark.parametrize(
    ("seconds", "runner"),
    [
        (0.001, {"queued_s": 99.0}),
        (0.001, {"error": LATE}),
        (None, {}),
    ],
)
def test_a_failing_call_ends_the_runner_and_frees_the_judge(seconds, runner):
    made = scripted(seconds)
    with pytest.raises(EvaluationEnded):
        gated_call(made.judge, ScriptedRunner(made.log, **runner), EMPTY_CALL)
    assert made.steps()[-3:] == ["kill", "abandon_call", "drain"]
    assert not made.judge.unanswered


def test_calibration_measures_judge_time_beyond_the_runners_own_events():
    made = scripted(0.000290)
    excess = measure_clock_excess(made.judge, ScriptedRunner(made.log, self_reported_us=10.0))
    assert excess == pytest.approx(0.000280)
    assert made.steps().count("queue_call") == SETTLING_CALLS + CALIBRATION_CALLS
    assert made.asked("queue_call")["publish"] is None
