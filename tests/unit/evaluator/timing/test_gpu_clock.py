"""Gated calls over a scripted judge and a scripted runner: the order of their messages."""

from __future__ import annotations

import inspect
import itertools
import re
from types import SimpleNamespace
from typing import Any

import pytest

from tilewright.evaluator.judge.process import Judge
from tilewright.evaluator.pipeline.gpu_checks import taken_share
from tilewright.evaluator.runners.ended import EvaluationEnded
from tilewright.evaluator.runners.gpu_runner import GpuRunner
from tilewright.evaluator.runners.messages import Result
from tilewright.evaluator.timing.case_timings import CaseTimes
from tilewright.evaluator.timing.cpu_clock import TimedCall
from tilewright.evaluator.timing.gpu_clock import (
    CALIBRATION_CALLS,
    KEPT,
    KNOWN_KERNEL,
    QUEUE_S,
    SETTLING_CALLS,
    SHORTEST_S,
    CudaEventClock,
    calibrate,
    gated_call,
    measure_own_kernel_time,
)
from tilewright.records import Failed

LATE = EvaluationEnded(Failed(stage="timing", reason="timeout", message="no answer"))


class ScriptedRunner(GpuRunner):
    """A runner that queues after `queued_s` and returns what the script states."""

    def __init__(self, log: list[Any], queued_s: float = 0.0, **said: Any) -> None:
        self.name = "candidate"
        self.log = log
        self.queued_s = queued_s
        self.said = said
        self.inputs_bytes = 1 << 30
        self.limits: Any = SimpleNamespace(call_timeout_s=5.0)
        tree = SimpleNamespace(
            freeze=lambda: not log.append("freeze"),
            resume=lambda: log.append("resume"),
            keep_on=lambda cores: log.append(("on", cores)),
        )
        self.child: Any = SimpleNamespace(tree=tree, kill=lambda: log.append("kill"))

    def arm(self, fields: dict[str, Any], sequence: int) -> None:
        self.log.append(("arm", sequence, fields.get("profile", False)))

    def is_queued(self, within_s: float) -> bool:
        return self.queued_s <= within_s

    def output_addresses(self, count: int) -> list[int]:
        return [4096 + place for place in range(count)]

    def result(self) -> Result:
        if "error" in self.said:
            raise self.said["error"]
        return Result(outputs=[], launches=3, **self.said)

    def late(self) -> Exception:
        return LATE


class ScriptedSession:
    """A session whose judge answers from a script, and records its requests."""

    def __init__(self, seconds: float | None = 0.001) -> None:
        self.log: list[Any] = []
        self.seconds = seconds
        self.asked: dict[str, dict[str, Any]] = {}
        self.unanswered: list[str] = []
        cores = SimpleNamespace(runners=(4, 5))
        self.host = SimpleNamespace(sequences=itertools.count(7), cores=cores)
        self.runners: dict[str, ScriptedRunner] = {}
        self.call_s = 0.0

    def publish(self, runner: ScriptedRunner, sample: Any, slot: int) -> None:
        pass

    def ask(self, kind: str, fields: dict[str, Any]) -> dict[str, Any]:
        self.tell(kind, fields)
        return self.answered()

    def tell(self, kind: str, fields: dict[str, Any]) -> None:
        self.log.append(kind)
        self.asked[kind] = fields
        self.unanswered.append(kind)

    def answered(self) -> dict[str, Any]:
        del self.unanswered[0]
        said = {"mutated": [], "wrong": "", "message": "", "alias": False}
        return {"seconds": self.seconds, **said}

    def fields_of(self, sample: Any, slot: int) -> dict[str, Any]:
        return {**KNOWN_KERNEL, "base": slot * sample.slot_bytes, "expected": [{}, {}]}


def scripted_session(seconds: float | None = 0.001) -> Any:
    return ScriptedSession(seconds)


def test_a_call_is_queued_before_its_gate_opens_and_collected_before_its_check():
    made = scripted_session()
    runner = ScriptedRunner(made.log, self_reported_us=900.0)
    fields = made.fields_of(SimpleNamespace(slot_bytes=0), 0)
    call = gated_call(made, runner, fields, asked={"sample": "d"}, keep=True)
    assert made.log == ["gate", ("arm", 7, False), "collect", "timed"]
    assert made.asked["collect"]["addresses"] == [4096, 4097]
    assert made.asked["gate"]["keep"] == made.asked["collect"]["sample"] == "d"
    assert made.asked["timed"]["keep"] is False
    assert (call.seconds, call.early, call.result.self_reported_us) == (0.001, False, 900.0)


def test_a_call_that_waits_for_the_device_gets_an_open_gate_and_is_frozen():
    made = scripted_session()
    runner = ScriptedRunner(made.log, queued_s=2 * QUEUE_S)
    assert gated_call(made, runner, KNOWN_KERNEL).early
    assert made.log == [
        *("gate", ("arm", 7, False), "open", "freeze"),
        *("collect", "resume", "timed"),
    ]


def test_a_gate_that_is_open_from_the_start_marks_no_call_as_early():
    made = scripted_session()
    runner = ScriptedRunner(made.log, queued_s=2 * QUEUE_S)
    assert not gated_call(made, runner, KNOWN_KERNEL, ahead=False).early
    assert made.log == ["gate", "open", ("arm", 7, False), "collect", "timed"]


@pytest.mark.parametrize(
    ("seconds", "runner"),
    [
        (0.001, {"queued_s": 99.0}),
        (0.001, {"error": LATE}),
        (None, {}),
    ],
)
def test_a_failing_call_ends_the_runner_and_frees_the_judge(seconds, runner):
    made = scripted_session(seconds)
    with pytest.raises(EvaluationEnded):
        gated_call(made, ScriptedRunner(made.log, **runner), KNOWN_KERNEL)
    assert made.log[-2:] == ["kill", "abandon"]
    assert not made.unanswered


def test_calibration_measures_judge_time_beyond_the_runners_own_events():
    made = scripted_session(0.000290)
    excess = calibrate(made, ScriptedRunner(made.log, self_reported_us=10.0))
    assert excess == pytest.approx(0.000280)
    assert made.log.count("gate") == SETTLING_CALLS + CALIBRATION_CALLS
    assert made.asked["gate"]["publish"] is None


def test_a_time_is_reduced_by_the_calibrated_constant_and_stays_positive():
    made = scripted_session(0.000290)
    runner = ScriptedRunner(made.log, self_reported_us=1.0)
    sample: Any = SimpleNamespace(name="d", slot_bytes=4096)
    runner.clock_excess_s = 0.000280
    assert CudaEventClock().warm_up(made, runner, sample, 2) == pytest.approx(1e-5)
    wanted = {"sample": "d", "runner": "candidate", "base": 8192, "perturb": None}
    assert made.asked["gate"]["publish"] == wanted
    runner.clock_excess_s = 0.000300
    assert CudaEventClock().warm_up(made, runner, sample, 0) == SHORTEST_S


def test_the_official_protocol_uses_the_runners_own_events():
    made = scripted_session(0.001)
    runner = ScriptedRunner(made.log, self_reported_us=123.0)
    sample: Any = SimpleNamespace(name="d", slot_bytes=4096)
    assert CudaEventClock().publicly(made, runner, sample).total_s == pytest.approx(123e-6)
    assert made.log[:2] == ["gate", "open"]


def test_the_share_of_own_launches_comes_from_the_same_call():
    made = scripted_session(0.000290)
    runner = ScriptedRunner(made.log, self_reported_us=100.0, own_us=25.0)
    sample: Any = SimpleNamespace(name="d", slot_bytes=4096)
    share = measure_own_kernel_time(made, runner, sample)
    assert (share.seconds, share.launches) == (2.5e-5, 3)
    assert ("arm", 7, True) in made.log


def settled(queued: tuple[float, float], seconds: float) -> tuple[Any, CaseTimes]:
    """Return what was asked of whom, where an open call of the baseline takes `seconds`."""
    made, times = scripted_session(seconds), CaseTimes("one")
    names = ["eager", "candidate"]
    made.runners = {
        name: ScriptedRunner(made.log, queued_s=each)
        for name, each in zip(names, queued, strict=True)
    }
    one_case(made, times)
    return made, times


def one_case(made: Any, times: CaseTimes) -> None:
    """Run the calls of a case that decide how it is timed."""
    names, clock = list(made.runners), CudaEventClock()
    sample: Any = SimpleNamespace(name="d", slot_bytes=4096)
    clock.unsettle(made, names)
    for name in names:
        clock.warm_up(made, made.runners[name], sample, 0)
    made.log.append("warm-up")
    clock.settle(made, times, names, sample)


def test_all_runners_use_one_core_where_a_baselines_launches_take_long():
    made, times = settled((2 * QUEUE_S, 0.0), seconds=3 * QUEUE_S)
    assert times.launching is True
    assert made.log[-2:] == [("on", (4,)), ("on", (4,))]
    assert [runner.queue_s for runner in made.runners.values()] == [0.0, 0.0]
    # What is timed in further processes is timed alike, and nobody is asked again.
    made.runners["eager"] = ScriptedRunner(made.log)
    made.log.clear()
    sample: Any = SimpleNamespace(name="d", slot_bytes=4096)
    CudaEventClock().settle(made, times, ["eager", "candidate"], sample)
    assert made.log == [("on", (4,)), ("on", (4,))]
    assert made.runners["eager"].queue_s == 0.0
    # The next case may be of few launches, and long for its device: what was kept is told anew.
    made.log.clear()
    two = CaseTimes("two")
    one_case(made, two)
    assert two.launching is False
    assert made.log[:2] == [("on", (4, 5)), ("on", (4, 5))]
    assert ("on", (4,)) not in made.log
    assert [runner.queue_s for runner in made.runners.values()] == [QUEUE_S, QUEUE_S]


@pytest.mark.parametrize(
    ("queued", "seconds"),
    [
        ((0.0, 0.0), 3 * QUEUE_S),
        # It only waits for its device.
        ((2 * QUEUE_S, 0.0), QUEUE_S / 2),
        # A candidate has no say.
        ((0.0, 2 * QUEUE_S), 3 * QUEUE_S),
    ],
)
def test_runners_keep_both_cores_where_launches_precede_the_gate(queued, seconds):
    made, times = settled(queued, seconds)
    assert times.launching is False
    assert made.log[:2] == [("on", (4, 5)), ("on", (4, 5))]
    assert ("on", (4,)) not in made.log
    assert [runner.queue_s for runner in made.runners.values()] == [QUEUE_S, QUEUE_S]


@pytest.mark.parametrize(("launching", "seen"), [(True, [0.25]), (False, [])])
def test_candidate_cpu_time_outside_counted_launches_is_recorded(launching, seen):
    made, times = scripted_session(0.04), CaseTimes("one", launching=launching)
    names = ("eager", "candidate")
    made.runners = {name: ScriptedRunner(made.log) for name in names}
    for name, runner in made.runners.items():
        runner.name = name
    tree, looked = made.runners["candidate"].child.tree, itertools.count(1)
    # What it has used is known of the processes that were looked for.
    tree.look = lambda: setattr(tree, "known", 0.01 * next(looked))
    tree.cpu_s = lambda: tree.known
    sample: Any = SimpleNamespace(name="d", slot_bytes=4096)
    for name in names:
        turn = TimedCall(name, sample, 0, None, checked=False, last=False)
        CudaEventClock().call(made, times, turn, None)
    assert times.disturbed == pytest.approx(seen)


@pytest.mark.parametrize(
    ("launching", "alone", "used", "share"),
    [
        (False, 0.010, [], 0.3995),
        # The host was faster a moment later.
        (True, 0.010, [0.0, 0.01, 0.0], 0.0),
        # It used the CPU while the baseline was timed.
        (True, 0.014, [0.9, 1.0, 0.9], 0.9),
        # What it left runs on the device.
        (True, 0.005, [0.0], 1.299),
    ],
)
def test_a_baseline_that_is_slower_next_to_the_candidate_is_recorded(launching, alone, used, share):
    times = CaseTimes("one", launching=launching, totals={"eager": [0.014]}, disturbed=used)
    assert taken_share(times, "eager", alone) == pytest.approx(share)


def test_the_clock_sends_every_field_that_the_judge_reads_after_a_call():
    read = set(re.findall(r'fields\["(\w+)"\]', inspect.getsource(Judge.timed)))
    assert {"sample", "addresses"} < read
    assert read <= {"sample", "runner", "base", "expect", "compare", *KEPT}
