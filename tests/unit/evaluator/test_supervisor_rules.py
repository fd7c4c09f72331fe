"""Rules of the supervisor that need no tensor: secrets, schemas, caches, deadlines.

`python -m benchmarks --only planted_bugs` plants bugs that these tests must find.
"""

from __future__ import annotations

import socket
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tilewright.errors import InfrastructureError
from tilewright.evaluator.context import EvaluationContext
from tilewright.evaluator.devices.devices import CPU
from tilewright.evaluator.judge_client.client import JudgeClient
from tilewright.evaluator.judge_client.gpu_messages import Probe
from tilewright.evaluator.pipeline import prepare, requested_builds
from tilewright.evaluator.pipeline.correctness import hidden_cases
from tilewright.evaluator.runners.cpu_runner import Runner
from tilewright.evaluator.runners.messages import EvaluationEnded
from tilewright.evaluator.runners.pool import RunnerPool
from tilewright.evaluator.seeds import generator
from tilewright.problems.loader import parse_problem
from tilewright.records import (
    Candidate,
    EvalRequest,
    Failed,
    IsolationStatus,
    Limits,
    ReportEnvironment,
    SourceFile,
)
from tilewright.wire.frames import Channel

PROBLEM = """CASES = [{"name": "a", "n": 100}, {"name": "b", "n": 7}]
VARY = {"sizes": {"n": [1, 500]}}


def inputs(case, generator):
    return ()


def reference():
    return ()
"""
SOURCE = 'extern "C" int work() { return 0; }\n'
ROOTS = ("00" * 16, "ff" * 16)
HERE = ReportEnvironment(device="cpu", device_name="a", host={}, versions={})


def candidate(text: str = SOURCE, name: str = "work.cpp") -> Candidate:
    return Candidate(language="cpp", files=(SourceFile(path=name, text=text),), entry="work")


def request(**changes: Any) -> EvalRequest:
    problem = parse_problem(PROBLEM, "work", "work", "a test")
    return EvalRequest(problem=problem, candidate=candidate()).model_copy(update=changes)


def test_hidden_sizes_differ_from_public_ones_and_stay_in_range():
    public = {100, 7}
    seen = set()
    for number in range(20):
        cases = hidden_cases(request().problem, generator(f"{number:032x}", "sizes"))
        assert len(cases) >= 3
        seen |= {case.params["n"] for case in cases}
    assert {99, 101} <= seen, "no neighbour of a size that is published"
    assert len(seen - public) > 20
    assert all(1 <= size <= 500 for size in seen)


@pytest.mark.parametrize("published", [1, 500])
def test_a_published_size_at_the_end_of_the_range_is_no_hidden_size(published):
    given = request().problem
    cases = tuple(
        case.model_copy(update={"params": {**case.params, "n": published}}) for case in given.cases
    )
    for number in range(20):
        made = hidden_cases(
            given.model_copy(update={"cases": cases}), generator(f"{number:032x}", "sizes")
        )
        assert [case.params["n"] for case in made[:2]] == [2 if published == 1 else 499] * 2


def test_builds_are_cached_by_content_and_never_by_name(tmp_path: Path, monkeypatch):
    built: list[Candidate] = []

    def fake(_: Any, __: Any, made: Candidate) -> dict[str, bytes]:
        built.append(made)
        return {"kernel": made.files[0].text.encode()}

    monkeypatch.setattr(prepare, "_build", fake)
    monkeypatch.setattr(requested_builds.shutil, "which", lambda name: f"/usr/bin/{name}")
    host = SimpleNamespace(home=tmp_path, device=CPU)
    pool = SimpleNamespace(builds={})
    context = SimpleNamespace(requested=())
    seen = SimpleNamespace(correctness=SimpleNamespace(loops=()))
    session: Any = SimpleNamespace(
        host=host,
        on_gpu=False,
        runners=pool,
        request=request(),
        context=context,
        observations=seen,
    )
    other = SOURCE.replace("return 0", "return 1")
    for text in (SOURCE, other, SOURCE, other):
        prepare.build(session, "candidate", candidate(text))
        assert pool.builds["candidate"].artifacts == {"kernel": text.encode()}

    assert len(built) == 2


class Mute:
    """A child that is there and says nothing, with as much memory as the test likes."""

    def __init__(self, resident: int = 0) -> None:
        ours, self._theirs = socket.socketpair()
        self.channel = Channel(ours)
        self.tree = SimpleNamespace(
            cpu_s=lambda: 0.0,
            payload_hides=lambda: False,
            payload_is_runnable=lambda: False,
        )
        self.memory = SimpleNamespace(
            excess=lambda allowed: resident if resident > allowed else None
        )
        self.applied = {"ipc_uts_cgroup_namespaces": "", "landlock": "not in this kernel"}
        self.killed = self.closed = False

    def kill_async(self) -> None:
        self.killed = True

    def kill(self) -> None:
        self.killed = self.closed = True
        self.channel.close()
        self._theirs.close()


def ended(action: Any) -> Failed:
    start = time.monotonic()
    with pytest.raises(EvaluationEnded) as caught:
        action()
    assert time.monotonic() - start < 2.0
    outcome = caught.value.outcome
    assert isinstance(outcome, Failed)
    return outcome


@pytest.mark.timeout(8)
@pytest.mark.parametrize(
    "action",
    [
        lambda runner: runner.ask("call", {}),
        lambda runner: runner.timed_call({}),
        lambda runner: runner.receive(time.monotonic() + 0.2),
    ],
)
def test_an_answer_after_its_deadline_is_a_timeout(action):
    child: Any = Mute()
    runner = Runner("candidate", child, Limits(call_timeout_s=0.2), lambda: None, float("inf"), 1)
    runner.entered = True

    assert ended(lambda: action(runner)).reason == "timeout"
    runner.close()


def test_a_failure_before_candidate_code_runs_is_an_infrastructure_error():
    child: Any = Mute()
    runner = Runner("candidate", child, Limits(call_timeout_s=0.2), lambda: None, float("inf"), 1)

    with pytest.raises(InfrastructureError, match="before its candidate was entered: timeout"):
        runner.load({"files": []}, b"")
    runner.close()


@pytest.mark.timeout(8)
@pytest.mark.parametrize("action", [lambda s: s.ask("call", {}), lambda s: s.timed_call({})])
def test_the_whole_evaluation_has_a_deadline(action):
    child: Any = Mute()
    limits = Limits(call_timeout_s=60.0, total_timeout_s=0.2)
    runner = Runner("candidate", child, limits, lambda: None, time.monotonic() + 0.2, 1)
    runner.entered = True

    assert "whole evaluation" in ended(lambda: action(runner)).message
    runner.close()


@pytest.mark.timeout(8)
def test_memory_beyond_the_limit_ends_the_candidate():
    child: Any = Mute(resident=8 << 30)
    limits = Limits(call_timeout_s=60.0, memory_bytes=1 << 30)
    runner = Runner("candidate", child, limits, lambda: None, float("inf"), 1)
    runner.entered = True

    assert ended(lambda: runner.ask("call", {})).reason == "out_of_memory"
    assert child.killed
    runner.close()
    # Its descriptors in this process are gone, and with them what it could fill.
    assert runner.excess() == ""


def pool_of(made: EvalRequest) -> RunnerPool:
    host: Any = SimpleNamespace(device=CPU)
    context = EvaluationContext(host, made, ROOTS[0], lambda *_: None, lambda: None)
    return RunnerPool(context, JudgeClient(context))


def test_a_layer_that_is_off_is_recorded_as_off():
    child: Any = Mute()
    pool = pool_of(request())
    pool.record_isolation(child)

    assert pool.isolation == (
        IsolationStatus(name="ipc_uts_cgroup_namespaces", active=True),
        IsolationStatus(name="landlock", active=False, detail="not in this kernel"),
    )
    for layers in (("landlock",), ("ipc_uts_cgroup_namespaces", "no such layer")):
        strict = pool_of(request(require_isolation=layers))
        with pytest.raises(EvaluationEnded) as caught:
            strict.record_isolation(child)
        assert caught.value.outcome.verdict == "unjudged"
    child.kill()


def test_a_missing_judge_is_an_infrastructure_error():
    pool = pool_of(request())
    with pytest.raises(InfrastructureError):
        pool.judge.request(Probe())
