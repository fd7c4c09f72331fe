"""How the clock of a GPU makes a call, and which launch gate a case gets."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from tests.scripted_gpu import ScriptedRunner, ScriptedSample, scripted
from tilewright.evaluator.judge_client.client import InputSampleInfo
from tilewright.evaluator.judge_client.messages import (
    OutputPlaces,
    PublishSample,
    RenewSample,
    SampleLayout,
)
from tilewright.evaluator.pipeline.gpu_checks import slowdown_share
from tilewright.evaluator.runners.gpu_runner import (
    QUEUE_TIMEOUT_S,
)
from tilewright.evaluator.timing.case_timings import CaseTimes, LaunchGateMode, TimedCall
from tilewright.evaluator.timing.gpu_clock import (
    MIN_QUEUE_TIMEOUT_S,
    MIN_TIME_S,
    WAITING_FACTOR,
    CudaEventClock,
    profiled_call,
)

LAUNCHING = LaunchGateMode(0.0, launching=True)


RENEWAL = RenewSample("d", 1, 2, "nominal", varied=False)


@pytest.mark.parametrize("fresh", [True, False])
def test_inputs_are_made_while_the_runner_queues_unless_a_seed_gave_other_shapes(fresh):
    made, times = scripted(), CaseTimes.of("one", ["eager", "candidate"], on_device=True)
    made.judge.renewals = [fresh]
    made.runners = {name: ScriptedRunner(made.log) for name in ("eager", "candidate")}
    sample: Any = ScriptedSample()
    turn = TimedCall("eager", sample, 0, "nominal", checked=False, last=False, renewal=RENEWAL)
    CudaEventClock().call(made, times, turn)

    assert made.steps()[:3] == ["renew", "queue_call", ("arm", 7, False)]
    assert not made.judge.unanswered
    assert times.gpu.renews_early is not fresh


def test_a_call_whose_inputs_were_made_in_another_layout_is_made_again_in_that_layout():
    made, times = scripted(), CaseTimes.of("one", ["eager", "candidate"], on_device=True)
    made.judge.tree = {"t": "tuple", "v": [{"t": "value", "v": 1}]}
    made.runners = {name: ScriptedRunner(made.log) for name in ("eager", "candidate")}
    empty = {"t": "tuple", "v": []}
    layout = SampleLayout(
        *(empty, "nominal", empty, [], 64, [], 0, "1", "float64", False, False, "", 0.0, False),
        OutputPlaces(False, [[0, 64]], [], []),
    )
    sample = InputSampleInfo("d", "only", "nominal", 1, 2, layout)
    turn = TimedCall("candidate", sample, 0, "nominal", checked=False, last=False, renewal=RENEWAL)
    CudaEventClock().call(made, times, turn)

    assert made.runners["candidate"].trees == [layout.tree, made.judge.tree]
    # The supervisor does not know the places of writable inputs in the new layout.
    assert made.runners["candidate"].armed["writable"] == []
    assert made.steps().count("renew") == 1
    assert len(times.gpu.self_reported_s["candidate"]) == 1
    assert times.gpu.renews_early


def test_a_time_is_reduced_by_the_calibrated_constant_and_stays_positive():
    made = scripted(0.000290)
    runner = ScriptedRunner(made.log, self_reported_us=1.0)
    sample: Any = ScriptedSample()
    runner.clock_excess_s = 0.000280
    assert CudaEventClock().warm_up(made, runner, sample, 2) == pytest.approx(1e-5)
    assert made.asked("queue_call")["publish"] == PublishSample("d", "candidate", 8192)
    runner.clock_excess_s = 0.000300
    assert CudaEventClock().warm_up(made, runner, sample, 0) == MIN_TIME_S


def test_the_official_protocol_uses_the_runners_own_events():
    made = scripted(0.001)
    runner = ScriptedRunner(made.log, self_reported_us=123.0)
    sample: Any = ScriptedSample()
    assert CudaEventClock().time_officially(made, runner, sample).total_s == pytest.approx(123e-6)
    assert made.steps()[:2] == ["queue_call", "open_gate"]
    # Launches then take no time of a kernel's interval: they happen while the device is busy.
    assert runner.armed["clears_cache"] is True


def test_the_share_of_own_launches_comes_from_the_same_call():
    made = scripted(0.000290)
    runner = ScriptedRunner(made.log, self_reported_us=100.0, own_us=25.0)
    sample: Any = ScriptedSample()
    report = profiled_call(made, runner, sample)
    assert (report.own_us, report.launches) == (25.0, 3)
    assert ("arm", 7, True) in made.log


def settled(queued: tuple[float, float], seconds: float) -> tuple[Any, CaseTimes]:
    """Return a pool and its times; a baseline's call takes `seconds` once its gate is open."""
    made, times = scripted(seconds), CaseTimes("one")
    names = ["eager", "candidate"]
    made.runners = {
        name: ScriptedRunner(made.log, queued_s=each)
        for name, each in zip(names, queued, strict=True)
    }
    one_case(made, times)
    return made, times


def one_case(made: Any, times: CaseTimes) -> None:
    """Prepare the runners for a case, until the clock has chosen how it is timed."""
    names, clock = list(made.runners), CudaEventClock()
    sample: Any = ScriptedSample()
    clock.reset_mode(made, names)
    for name in names:
        clock.warm_up(made, made.runners[name], sample, 0)
    made.log.append("warm")
    clock.choose_mode(made, times, names, sample)


def test_all_runners_use_one_core_where_a_baselines_launches_take_long():
    made, times = settled((2 * QUEUE_TIMEOUT_S, 0.0), seconds=3 * QUEUE_TIMEOUT_S)
    assert times.gpu.launching is True
    assert made.log[-2:] == [("on", (4,)), ("on", (4,))]
    assert [runner.queue_timeout_s for runner in made.runners.values()] == [0.0, 0.0]
    # Further processes use the same mode; the clock does not ask them.
    made.runners["eager"] = ScriptedRunner(made.log)
    made.log.clear()
    sample: Any = ScriptedSample()
    CudaEventClock().choose_mode(made, times, ["eager", "candidate"], sample)
    assert made.log == [("on", (4,)), ("on", (4,))]
    assert made.runners["eager"].queue_timeout_s == 0.0
    # After the candidate's end a case is timed once more, in its own mode.
    made.log.clear()
    CudaEventClock().use_mode(made, CaseTimes("few launches"), ["eager"])
    CudaEventClock().use_mode(made, times, ["eager"])
    assert made.log == [("on", (4, 5)), ("on", (4,))]
    assert made.runners["eager"].queue_timeout_s == 0.0
    # The next case may have few launches, so cached runners get the default mode again.
    made.log.clear()
    two = CaseTimes("two")
    one_case(made, two)
    assert two.gpu.launching is False
    assert made.log[:2] == [("on", (4, 5)), ("on", (4, 5))]
    assert ("on", (4,)) not in made.log
    assert [runner.queue_timeout_s for runner in made.runners.values()] == [
        QUEUE_TIMEOUT_S,
        QUEUE_TIMEOUT_S,
    ]


@pytest.mark.parametrize(
    ("queued", "seconds", "closed_s", "waits"),
    [
        ((0.0, 0.0), 3 * QUEUE_TIMEOUT_S, QUEUE_TIMEOUT_S, False),
        # It only waits for its device.
        ((2 * QUEUE_TIMEOUT_S, 0.0), QUEUE_TIMEOUT_S / 2, QUEUE_TIMEOUT_S, True),
        # The gate opens once it has had time to reach its wait.
        ((2 * QUEUE_TIMEOUT_S, 0.0), 0.0006, WAITING_FACTOR * 0.0006, True),
        ((2 * QUEUE_TIMEOUT_S, 0.0), 0.0002, MIN_QUEUE_TIMEOUT_S, True),
        # A candidate has no say.
        ((0.0, 2 * QUEUE_TIMEOUT_S), 3 * QUEUE_TIMEOUT_S, QUEUE_TIMEOUT_S, False),
    ],
)
def test_runners_keep_both_cores_where_launches_precede_the_gate(queued, seconds, closed_s, waits):
    made, times = settled(queued, seconds)
    assert times.gpu.launching is False
    assert times.gpu.includes_host is waits
    assert made.log[:2] == [("on", (4, 5)), ("on", (4, 5))]
    assert ("on", (4,)) not in made.log
    found = [runner.queue_timeout_s for runner in made.runners.values()]
    assert found == [pytest.approx(closed_s)] * 2


def test_one_slow_call_does_not_make_a_baseline_launch_bound():
    made = scripted()
    made.judge.first_seconds = [0.001, 0.05]
    made.runners = {"eager": ScriptedRunner(made.log, queued_s=2 * QUEUE_TIMEOUT_S)}
    times = CaseTimes("one")
    one_case(made, times)
    assert times.gpu.launch_gate == LaunchGateMode(WAITING_FACTOR * 0.001, waits=True)


@pytest.mark.parametrize(
    ("mode", "counted"),
    [
        (LaunchGateMode(0.0, launching=True), True),
        (LaunchGateMode(0.002, waits=True), True),
        (LaunchGateMode(QUEUE_TIMEOUT_S), False),
    ],
)
def test_candidate_cpu_time_is_recorded_if_host_work_is_timed(mode, counted, monkeypatch):
    clock_s = itertools.count(0.0, 0.04)
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock_s))
    names = ("eager", "candidate")
    made, times = scripted(0.04), CaseTimes.of("one", names, on_device=True)
    times.gpu.launch_gate = mode
    made.runners = {name: ScriptedRunner(made.log) for name in names}
    for name, runner in made.runners.items():
        runner.name = name
    for name, each_s in (("candidate", 0.01), ("eager", 0.002)):
        tree, looked = made.runners[name].child.tree, itertools.count(1)
        # The tree knows the CPU time of the processes that it has found so far.
        tree.refresh = partial(_found, tree, looked, each_s)
        tree.cpu_s = partial(getattr, tree, "known")
    sample: Any = ScriptedSample()
    for name in names:
        turn = TimedCall(name, sample, 0, "nominal", checked=False, last=False)
        CudaEventClock().call(made, times, turn)
    shares = [*times.disturbed, *times.gpu.baseline_cpu]
    assert len(shares) == 2 * counted
    if counted:
        # Four looks at the clock, 0.04 s apart, lie between the first and the last.
        assert shares == pytest.approx([0.01 / 0.12, 0.002 / 0.12])


def _found(tree: Any, looked: Iterator[int], each_s: float) -> None:
    tree.known = each_s * next(looked)


def test_official_times_are_compared_with_official_ones_that_may_drift():
    times = CaseTimes("one", total_s={"eager": [0.014]})
    assert slowdown_share(times, "eager", 0.010, official=True) < 0
    assert slowdown_share(times, "eager", 0.007, official=True) == pytest.approx(0.4993, abs=1e-4)


def test_threads_that_wait_actively_in_a_baseline_too_are_no_interference():
    times = CaseTimes("one", total_s={"eager": [0.014]}, disturbed=[0.3, 0.3])
    times.gpu.launch_gate, times.gpu.baseline_cpu = (
        LaunchGateMode(0.0, launching=True),
        [0.28, 0.28],
    )
    assert slowdown_share(times, "eager", 0.014) == pytest.approx(0.02)


@pytest.mark.parametrize(
    ("mode", "alone", "used", "share"),
    [
        (None, 0.010, [], 0.3995),
        # The host was faster a moment later.
        (LAUNCHING, 0.010, [0.0, 0.01, 0.0], 0.0),
        (LaunchGateMode(0.001, waits=True), 0.010, [0.0, 0.01, 0.0], 0.0),
        # It used the CPU while the baseline was timed.
        (LAUNCHING, 0.014, [0.9, 1.0, 0.9], 0.9),
        # Its unfinished work runs on the device.
        (LAUNCHING, 0.005, [0.0], 1.299),
    ],
)
def test_a_baseline_that_is_slower_next_to_the_candidate_is_recorded(mode, alone, used, share):
    times = CaseTimes("one", total_s={"eager": [0.014]}, disturbed=used)
    times.gpu.launch_gate = mode
    assert slowdown_share(times, "eager", alone) == pytest.approx(share)
