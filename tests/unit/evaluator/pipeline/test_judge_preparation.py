"""A judge that is prepared before the lease: it is used, or another one does its work.

There is no device here, so the judge is not asked for sizes of device memory.
"""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from tests import in_process_evaluator
from tests.in_process_evaluator import InProcessEvaluator, a_request
from tilewright.errors import CompilationTimeout, InfrastructureError, ProblemError
from tilewright.evaluator.devices.device_memory import CONTEXT_BYTES
from tilewright.evaluator.judge.kernel_compilation import AnnouncedCompilation
from tilewright.evaluator.judge.process import Judge
from tilewright.evaluator.judge.request_loop import answer_requests
from tilewright.evaluator.judge_client import client
from tilewright.evaluator.pipeline import judge_preparation, problem_check
from tilewright.evaluator.pipeline.session import EvaluationSession
from tilewright.evaluator.processes.device_lease import DeviceLease
from tilewright.evaluator.processes.host import lease_name
from tilewright.wire.frames import Channel, ChannelClosed

PROBLEM = """import torch

CASES = [{"name": "one", "n": 16}]


def inputs(case, generator):
    return (torch.rand(case["n"], 8, generator=generator),)


def reference(x):
    return x * 2 + 1
"""
HONEST = "def work(x):\n    return x * 2 + 1\n"
WRONG = "def work(x):\n    return x * 2\n"
COMPILING = PROBLEM.replace(
    "    return x *", "    import a_compiler\n\n    a_compiler.compile()\n    return x *"
)
CONSTANT = PROBLEM.replace("x * 2 + 1", "torch.ones_like(x)")
Disturb = Callable[[EvaluationSession], None]


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch) -> Callable[[Disturb], None]:
    """Prepare judges on a CPU; something may happen before the problem is checked."""
    check = judge_preparation.check_problem

    def disturb(action: Disturb) -> None:
        def checked(session: EvaluationSession, *, shared: bool) -> None:
            action(session)
            check(session, shared=shared)

        monkeypatch.setattr(judge_preparation, "check_problem", checked)

    monkeypatch.setattr(judge_preparation, "_may_prepare", lambda _: True)
    monkeypatch.setattr(judge_preparation, "size_memory", lambda _: None)
    return disturb


def judged(
    evaluator: InProcessEvaluator, problem: str, candidate: str
) -> tuple[Any, list[tuple[str, dict[str, Any]]]]:
    events: list[tuple[str, dict[str, Any]]] = []
    request = a_request(problem, candidate)
    report = evaluator.judge(request, lambda event, fields: events.append((event, fields)))
    return report, events


@pytest.mark.usefixtures("prepared")
@pytest.mark.parametrize(("candidate", "verdict"), [(HONEST, "correct"), (WRONG, "incorrect")])
def test_the_prepared_judge_judges(evaluator, candidate, verdict):
    report, _ = judged(evaluator, PROBLEM, candidate)

    assert report.verdict == verdict
    stages = [item.name for item in report.stages]
    assert stages.index("check_problem") < stages.index("device_wait") < stages.index("start_judge")
    assert [child.role for child in evaluator.children].count("judge") == 1
    assert evaluator.prepared is None


@pytest.mark.usefixtures("prepared")
def test_an_unsound_problem_takes_no_device(evaluator):
    report, _ = judged(evaluator, CONSTANT, HONEST)

    assert report.verdict == "unjudged"
    assert "device_wait" not in [item.name for item in report.stages]
    # The judge waits for another candidate, as after every evaluation.
    assert len(evaluator.idle_judges) == 1


def test_a_judge_that_was_ended_to_make_room_is_replaced(evaluator, prepared):
    prepared(lambda session: session.host.end_idle())
    report, events = judged(evaluator, PROBLEM, HONEST)

    assert report.verdict == "correct"
    assert [child.role for child in evaluator.children].count("judge") == 2
    assert any("make room" in fields.get("because", "") for _, fields in events)


def test_a_failure_while_a_judge_is_prepared_costs_no_verdict(evaluator, prepared):
    def fail(session: EvaluationSession) -> None:
        raise InfrastructureError(f"{session.request.problem.id}: lost")

    prepared(fail)
    assert judged(evaluator, PROBLEM, HONEST)[0].verdict == "correct"


def test_a_prepared_judge_counts_as_held_memory(evaluator, prepared):
    held: list[int] = []
    prepared(lambda session: held.append(session.host.held_bytes))
    judged(evaluator, PROBLEM, HONEST)
    assert held == [CONTEXT_BYTES]


def test_a_problem_that_fails_on_the_shared_device_is_judged_alone(evaluator, prepared):
    def fail(session: EvaluationSession) -> None:
        raise ProblemError(f"{session.request.problem.id}: its code did not end within 30 s")

    prepared(fail)
    assert judged(evaluator, PROBLEM, HONEST)[0].verdict == "correct"


@pytest.mark.usefixtures("prepared")
def test_a_slow_check_on_the_shared_device_is_made_again_alone(evaluator, monkeypatch):
    monkeypatch.setattr(problem_check, "MAX_SHARED_S", -1.0)
    report, events = judged(evaluator, PROBLEM, HONEST)
    assert report.verdict == "correct"
    stages = [item.name for item in report.stages]
    assert stages.count("check_problem") == 2
    assert stages.index("device_wait") < len(stages) - 1 - stages[::-1].index("check_problem")
    assert [event for event, _ in events].count("problem_check") == 2


@pytest.mark.usefixtures("prepared")
def test_the_call_shapes_of_a_first_triton_candidate_are_drawn(evaluator, monkeypatch):
    shapes: list[Any] = []
    original = judge_preparation.keep_call_shapes
    keep = lambda session, calls: (shapes.extend(calls), original(session, calls))  # noqa: E731
    monkeypatch.setattr(judge_preparation, "keep_call_shapes", keep)
    evaluator.judge(a_request(PROBLEM, HONEST, language="triton"))
    call, *_ = shapes
    assert call["args"]["v"][0]["shape"] == [16, 8]


def test_work_on_the_shared_device_ends_with_its_lease(evaluator, prepared):
    """An error inside leaves no judge that goes on computing while another one times."""
    seen: list[bool] = []

    def fail(session: EvaluationSession) -> None:
        try:
            with session.on_device():
                raise InfrastructureError("lost")
        except InfrastructureError:
            seen.append(session.judge.running)
            raise

    prepared(fail)
    assert judged(evaluator, PROBLEM, HONEST)[0].verdict == "correct"
    assert seen == [False]


def test_shared_work_and_waits_do_not_use_up_the_time_of_an_evaluation(evaluator, prepared):
    given: list[float] = []

    def wait(session: EvaluationSession) -> None:
        before = session.runners.deadline
        with session.credited():
            with session.uncounted():
                time.sleep(0.2)
            time.sleep(0.1)
        given.append(session.runners.deadline - before)

    prepared(wait)
    judged(evaluator, PROBLEM, HONEST)
    assert given[0] == pytest.approx(0.3, abs=0.05)


@pytest.fixture
def compiles(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None]], None]:
    """Let the judge announce the compilations by the module `a_compiler`, which an action plays."""

    def play(action: Callable[[], None]) -> None:
        compiler = SimpleNamespace(compile=action)

        def judge(sock: socket.socket, applied: dict[str, str]) -> None:
            channel = Channel(sock)
            compilation = AnnouncedCompilation(channel, lambda: None)
            compilation.announce(compiler)
            answer_requests(channel, applied, Judge().handlers(), compilation.receive)

        monkeypatch.setitem(in_process_evaluator.MAINS, "judge", judge)
        monkeypatch.setitem(sys.modules, "a_compiler", compiler)

    return play


def wait_for(lease: DeviceLease, seconds: float = 5.0) -> bool:
    """Take a lease as soon as it can be had."""
    until = time.monotonic() + seconds
    while not (taken := lease.try_take()) and time.monotonic() < until:
        time.sleep(0.01)
    return taken


@pytest.mark.usefixtures("prepared")
def test_another_evaluation_has_the_device_alone_while_the_judge_compiles(evaluator, compiles):
    name, taken = lease_name(evaluator.device, evaluator.cores), list[bool]()

    def compile_once() -> None:
        if not taken:
            with DeviceLease(name, shared=False) as alone:
                taken.append(wait_for(alone))

    compiles(compile_once)
    assert judged(evaluator, COMPILING, HONEST)[0].verdict == "correct"
    assert taken == [True]


@pytest.mark.usefixtures("prepared")
@pytest.mark.parametrize("each_s", [1.0, 0.2], ids=["one kernel", "several kernels"])
def test_a_reference_that_does_not_compile_in_time_is_not_tried_alone(
    evaluator, compiles, monkeypatch, each_s
):
    compiles(lambda: time.sleep(each_s))
    monkeypatch.setattr(client, "MIN_TIMEOUT_S", 0.3)
    request = a_request(COMPILING, HONEST, limits={"total_timeout_s": 0.3})
    with pytest.raises(CompilationTimeout, match=r"did not compile within 0\.3 s"):
        evaluator.judge(request)
    assert [child.role for child in evaluator.children].count("judge") == 1


def test_requests_that_arrive_while_the_judge_compiles_are_kept_in_order():
    ours, theirs = (Channel(one) for one in socket.socketpair())
    compiler = SimpleNamespace(compile=lambda: "kernel")
    compilation = AnnouncedCompilation(theirs, lambda: None)
    for _ in range(2):
        # The judge loads its problem again for a second candidate.
        compilation.announce(compiler)
    assert not compilation.has_request()
    for kind in ("first", "second", "resume", "third"):
        ours.send(kind)
    assert compilation.receive().kind == "first"
    # The backward pass of a reference compiles in a thread of torch's.
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(compiler.compile).result(5.0) == "kernel"
    assert [compilation.receive().kind for _ in range(2)] == ["second", "third"]
    assert not compilation.has_request()
    ours.send("fourth")
    assert compilation.has_request()
    assert compilation.receive().kind == "fourth"
    assert [ours.receive().kind for _ in range(2)] == ["compiling", "compiled"]
    ours.close()
    with pytest.raises(ChannelClosed):
        compilation.receive()
    # Nobody would answer.
    assert compiler.compile() == "kernel"
    theirs.close()
