"""Evaluations beside other supervisors that hold memory of the device: whole ones, and their start.

There is no device here. Another process stands for a supervisor that keeps memory: while it does, a
file exists, and what needs much memory raises as torch does on a GPU.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.in_process_evaluator import ROOT, a_request
from tests.shared_device import GIB, HONEST, PROBLEM, TOTAL, WORK
from tilewright.errors import (
    BaselineOutOfMemory,
    InfrastructureError,
    ProblemError,
)
from tilewright.evaluator.context import EvaluationContext
from tilewright.evaluator.devices.device_memory import CONTEXT_BYTES, known_need, record_need
from tilewright.evaluator.devices.nvml import Conditions
from tilewright.evaluator.devices.recorded_environment import device_key
from tilewright.evaluator.judge_client.gpu_messages import CaseMeasured
from tilewright.evaluator.pipeline import memory_admission
from tilewright.evaluator.pipeline.memory_admission import (
    admit,
    admit_estimated,
    estimate_need,
    estimated_need,
    has_room,
    note_use,
)
from tilewright.evaluator.processes.idle import IdleJudge, RunnerCache
from tilewright.evaluator.processes.memory_ledger import DeviceCrowded
from tilewright.evaluator.runners.baselines import baseline_failed
from tilewright.evaluator.runners.messages import EvaluationEnded
from tilewright.records import EvalReport, Failed
from tilewright.records.codes import FailureReason

CHECK = """    if os.path.exists("MEMORY"):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 40 GiB")
"""
ALWAYS = '    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 400 GiB")\n'


def needing(memory: Path, text: str = WORK) -> str:
    return text.replace("CHECK", CHECK).replace("MEMORY", str(memory))


class Events(list[tuple[str, Any]]):
    def __call__(self, event: str, fields: Any) -> None:
        self.append((event, fields))

    @property
    def retries(self) -> list[str]:
        return [fields["because"] for event, fields in self if event == "retry"]


def repeated_alone(report: EvalReport) -> bool:
    (detail,) = [stage.detail for stage in report.stages if stage.name == "device_wait"]
    return detail.startswith("repeated alone on the device: ")


def test_a_candidate_that_lacks_memory_beside_others_is_repeated_alone(evaluator, shared):
    events, memory = Events(), shared()
    shared(1)
    report = evaluator.judge(a_request(PROBLEM, needing(memory)), events)

    assert report.verdict == "correct", report.outcome
    assert repeated_alone(report)
    assert len(events.retries) == 1
    assert "ran out of memory while others held some" in events.retries[0]
    assert not any(evaluator.ledger.others().values())


def test_a_candidate_that_lacks_memory_alone_failed(evaluator, shared):
    events = Events()
    shared()
    report = evaluator.judge(a_request(PROBLEM, WORK.replace("CHECK", ALWAYS)), events)

    assert (report.verdict, report.outcome.reason) == ("failed", "out_of_memory")
    assert repeated_alone(report)
    assert len(events.retries) == 1


@pytest.mark.parametrize("others", [0, 1])
def test_without_memory_of_others_a_verdict_is_final_at_once(evaluator, shared, others):
    events = Events()
    for _ in range(others):
        shared(0)
    report = evaluator.judge(a_request(PROBLEM, WORK.replace("CHECK", ALWAYS)), events)

    assert (report.verdict, report.outcome.reason) == ("failed", "out_of_memory")
    assert not events.retries
    assert not repeated_alone(report)


def test_another_failure_beside_others_is_not_repeated(evaluator, shared):
    events = Events()
    shared()
    wrong = WORK.replace("CHECK", "    raise ValueError('no')\n")
    report = evaluator.judge(a_request(PROBLEM, wrong), events)

    assert (report.verdict, report.outcome.reason) == ("failed", "exception")
    assert not events.retries


def test_a_problem_that_lacks_memory_beside_others_is_not_blamed(evaluator, shared):
    events, memory = Events(), shared()
    problem = needing(memory, PROBLEM.replace("    return x *", "CHECK    return x *"))
    report = evaluator.judge(a_request(problem, HONEST), events)

    assert report.verdict == "correct", report.outcome
    assert repeated_alone(report)
    assert len(events.retries) == 1
    always = PROBLEM.replace("    return x *", f"{ALWAYS}    return x *")
    with pytest.raises(ProblemError, match="400 GiB"):
        evaluator.judge(a_request(always, HONEST), events)
    assert len(events.retries) == 1


def test_a_baseline_that_lacks_memory_beside_others_is_not_blamed(evaluator, shared):
    context = EvaluationContext(
        evaluator, a_request(PROBLEM, HONEST), ROOT, lambda *_: None, lambda: None
    )
    lacked, other = (
        EvaluationEnded(
            Failed(stage="timing", reason=reason, exception="RuntimeError", message="no memory")
        )
        for reason in (FailureReason.OUT_OF_MEMORY, FailureReason.TIMEOUT)
    )
    assert isinstance(baseline_failed(context, "eager", lacked), BaselineOutOfMemory)
    shared()
    assert isinstance(baseline_failed(context, "eager", lacked), DeviceCrowded)
    assert isinstance(baseline_failed(context, "eager", other), ProblemError)
    other.repeatable = True
    assert type(baseline_failed(context, "eager", other)) is InfrastructureError


def test_a_candidate_that_lacks_host_memory_ends_nobodys_idle_processes(evaluator, shared):
    events = Events()
    shared()
    greedy = WORK.replace("CHECK", "    raise MemoryError\n")
    report = evaluator.judge(a_request(PROBLEM, greedy), events)

    assert (report.verdict, report.outcome.reason) == ("failed", "out_of_memory")
    assert not events.retries
    assert any(evaluator.ledger.others().values())


def test_an_oracle_that_lacks_memory_beside_others_is_computed_alone(evaluator, shared):
    events, memory = Events(), shared()
    check = CHECK.replace("if ", "if x.dtype == torch.float64 and ")
    problem = PROBLEM.replace("    return x *", f"{check}    return x *")
    report = evaluator.judge(a_request(problem.replace("MEMORY", str(memory)), HONEST), events)

    assert report.verdict == "correct", report.outcome
    assert repeated_alone(report)
    assert {case.oracle for case in report.cases} == {"float64"}
    assert "float64 oracle" in events.retries[0]
    always = ALWAYS.replace("    ", "    if x.dtype == torch.float64: ")
    problem = PROBLEM.replace("    return x *", f"{always}    return x *")
    report = evaluator.judge(a_request(problem, HONEST), events)
    assert report.verdict == "correct", report.outcome
    assert {case.oracle for case in report.cases} == {"float32"}
    assert len(events.retries) == 1


def test_no_verdict_is_given_while_others_keep_their_memory(evaluator, shared, monkeypatch):
    monkeypatch.setattr(memory_admission, "ALONE_S", 0.05)
    memory = shared(how="is silent")

    with pytest.raises(InfrastructureError, match="lacked memory, and 1 other supervisors kept"):
        evaluator.judge(a_request(PROBLEM, needing(memory)))


def key_of(begun: Any) -> tuple[Path, str, str]:
    host = begun.session.host
    problem = begun.session.request.problem.digest()
    return host.home, device_key(host.cores, host.device), problem


@pytest.mark.parametrize(
    ("need", "left"),
    [(None, [40, 20, 5]), (15, [40, 20, 5]), (50, [20, 5]), (70, [5]), (80, []), (500, [])],
)
def test_what_is_known_to_be_needed_is_freed_before_the_start(begun, need, left):
    for held in (40, 20, 5):
        begun.start(held * GIB)
    if need is not None:
        record_need(*key_of(begun), need * GIB)
    admit(begun.session, [])

    held = begun.session.host.ledger.others().values()
    assert sorted(held) == sorted([0] * (3 - len(left)) + [number * GIB for number in left])
    assert begun.session.memory.others_bytes == sum(left) * GIB
    assert begun.session.observations.labels == []


def idle(log: list[str], name: str, held: int) -> IdleJudge:
    child: Any = SimpleNamespace(kill=lambda: log.append(name))
    return IdleJudge(child, RunnerCache(), held)


def test_our_own_idle_judges_end_before_others_are_asked(begun):
    host, log, key = begun.session.host, list[str](), begun.session.idle_key()
    begun.start(40 * GIB)
    held = {"oldest": 10, key: 12, "newest": 10}
    host.idle_judges = {name: idle(log, name, size * GIB) for name, size in held.items()}
    record_need(*key_of(begun), 30 * GIB)
    admit(begun.session, [])

    # 8 GiB were free, and the problem's own judge holds 12 of the 30.
    assert log == ["oldest"]
    assert list(host.idle_judges) == [key, "newest"]
    assert list(host.ledger.others().values()) == [40 * GIB]
    host.idle_judges.clear()


def sizes(gib: float) -> CaseMeasured:
    size = int(gib * GIB)
    return CaseMeasured(None, size, 0, size, 1, size, None, "fp32")


def test_an_unknown_need_is_estimated_from_the_largest_case(begun):
    begun.start(60 * GIB)
    admit(begun.session, [])
    estimate_need(begun.session, [sizes(0.01), sizes(0.02)])
    admit_estimated(begun.session)
    assert list(begun.session.host.ledger.others().values()) == [60 * GIB]
    estimate_need(begun.session, [sizes(0.01), sizes(2), sizes(0.1)])
    admit_estimated(begun.session)
    assert list(begun.session.host.ledger.others().values()) == [0]
    assert begun.session.memory.estimated_bytes == estimated_need(sizes(2), 0, 3)


def test_a_known_need_has_room_only_if_it_is_free_now(begun):
    host, problem = begun.session.host, begun.session.request.problem
    begun.start(60 * GIB)
    assert has_room(begun.session)
    record_need(host.home, device_key(host.cores, host.device), problem.digest(), 15 * GIB)
    assert has_room(begun.session)
    record_need(host.home, device_key(host.cores, host.device), problem.digest(), 30 * GIB)
    assert not has_room(begun.session)


def test_an_estimate_holds_the_judge_and_all_runners():
    small, large = (estimated_need(sizes(0), work * GIB, 3) for work in (1, 5))
    assert large - small == 12 * GIB
    assert estimated_need(sizes(0), 0, 3) == 4 * CONTEXT_BYTES
    assert estimated_need(sizes(1), 0, 1) > 15 * GIB


def test_the_use_of_an_evaluation_becomes_the_need_of_its_problem(begun):
    begun.start(40 * GIB)
    admit(begun.session, [])
    begun.session.memory.estimated_bytes = 12 * GIB
    note_use(begun.session, Conditions(used_bytes=50 * GIB, total_bytes=TOTAL))
    assert known_need(*key_of(begun)) == 10 * GIB
    # A candidate that takes all it can get.
    note_use(begun.session, Conditions(used_bytes=79 * GIB, total_bytes=TOTAL))
    assert known_need(*key_of(begun)) == 24 * GIB


@pytest.mark.parametrize(
    ("strangers", "estimate", "wanted"), [(6, 10, 6), (6, 4, 4), (-1, 10, 0.75), (6, 0, 0.75)]
)
def test_an_idle_judge_holds_what_the_evaluation_added_within_its_estimate(
    begun, strangers, estimate, wanted
):
    begun.start(40 * GIB)
    admit(begun.session, [])
    begun.session.memory.estimated_bytes = estimate * GIB
    # Whatever is in use now and was not at the start.
    begun.strangers = strangers * GIB

    assert begun.session._held_bytes() == wanted * GIB


def test_an_idle_judge_and_its_baselines_hold_a_context_each(begun):
    begun.start(40 * GIB)
    admit(begun.session, [])
    begun.session.memory.estimated_bytes = 4 * CONTEXT_BYTES
    for _ in range(2):
        runner: Any = SimpleNamespace(child=SimpleNamespace(kill_async=list), close=list)
        begun.session.runners.cached.release("eager", runner)
    # Memory that was in use at the start has been freed meanwhile.
    begun.strangers = -4 * GIB

    assert begun.session._held_bytes() == 3 * CONTEXT_BYTES


def test_memory_of_killed_processes_is_awaited_though_none_is_free_at_first(begun, monkeypatch):
    begun.start(0)
    looks = iter([8 * GIB] * 8 + [5 * GIB, 2 * GIB] + [GIB // 2] * 9)
    monkeypatch.setattr(memory_admission, "FREED_POLL_S", 0.001)
    monkeypatch.setattr(
        memory_admission,
        "conditions",
        lambda _: Conditions(used_bytes=next(looks), total_bytes=TOTAL),
    )
    memory_admission.end_all_idle(begun.session.host, lambda: None)
    assert len(list(looks)) == 8
