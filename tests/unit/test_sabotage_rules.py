"""Rules of the supervisor that need no tensor: secrets, schemas, caches, deadlines.

`python -m benchmarks --only sabotage` plants bugs in the judge and demands that these find them.
"""

from __future__ import annotations

import socket
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tilewright.contestant.frames import Channel, Frame, FrameError
from tilewright.errors import InfrastructureError
from tilewright.evaluator import build
from tilewright.evaluator.correctness import hidden_cases
from tilewright.evaluator.seeds import derive, draw_root, generator
from tilewright.evaluator.sides import Ended, Side
from tilewright.evaluator.testimony import Result, read, read_weights
from tilewright.problems.reader import parse_problem
from tilewright.records import (
    Candidate,
    Correct,
    Environment,
    EvalReport,
    EvalRequest,
    Failed,
    Limits,
    Protection,
    Rules,
    SourceFile,
    Unjudged,
)
from tilewright.records.store import lookup, remember, work_key

PROBLEM = """CASES = [{"name": "a", "n": 100}, {"name": "b", "n": 7}]
VARY = {"sizes": {"n": [1, 500]}}


def inputs(case, generator):
    return ()


def reference():
    return ()
"""
SOURCE = 'extern "C" int work() { return 0; }\n'
ROOTS = ("00" * 16, "ff" * 16)
HERE = Environment(device="cpu", device_name="a", host={}, versions={})


def candidate(text: str = SOURCE, name: str = "work.cpp") -> Candidate:
    return Candidate(language="cpp", files=(SourceFile(path=name, text=text),), entry="work")


def request(**changes: Any) -> EvalRequest:
    problem = parse_problem(PROBLEM, "work", "work", "a test")
    return EvalRequest(problem=problem, candidate=candidate()).model_copy(update=changes)


def test_every_name_and_every_root_has_a_seed_of_its_own():
    names = [("inputs", "a", "nominal", 0), ("inputs", "a", "nominal", 1), ("inputs", "b"), ()]
    seeds = {derive(root, *each) for root in ROOTS for each in names}

    assert len(seeds) == 8
    assert derive(ROOTS[0], "inputs") == derive(ROOTS[0], "inputs")
    assert draw_root() != draw_root()
    assert len(draw_root()) == 32
    assert generator(ROOTS[0], "a").random() != generator(ROOTS[1], "a").random()


def test_hidden_sizes_are_others_and_within_bounds():
    public = {100, 7}
    seen = set()
    for number in range(20):
        seeds = SimpleNamespace(
            request=request(), choices=lambda *names, n=number: generator(f"{n:032x}", *names)
        )
        cases: Any = hidden_cases(seeds)  # type: ignore[arg-type]
        assert len(cases) == 3
        seen |= {case.params["n"] for case in cases}
    assert len(seen - public) > 20
    assert all(1 <= size <= 500 for size in seen)


PLAIN = {"type": "tensor", "dtype": "float32", "shape": [2], "device": "cpu"}


@pytest.mark.parametrize(
    "fields",
    [
        {"outputs": [], "launches": 0, "verdict": "correct"},
        {"outputs": [{**PLAIN, "right": True}], "launches": 0},
        {"outputs": [], "launches": True},
        {"outputs": [], "launches": "3"},
        {"outputs": [], "launches": -1},
        {"outputs": [{**PLAIN, "shape": [-2]}], "launches": 0},
        {"outputs": [{**PLAIN, "offset": 0.5}], "launches": 0},
        {"outputs": [PLAIN] * 65, "launches": 0},
        {"outputs": []},
    ],
)
def test_testimony_beyond_its_schema_is_no_testimony(fields):
    with pytest.raises(FrameError):
        read(Frame("result", fields), Result)


def test_plain_testimony_is_read():
    assert read(Frame("result", {"outputs": [PLAIN], "launches": 2}), Result).launches == 2
    assert read_weights(b'[["w",[2],"float32"],["i",[1],"int64"]]') == b'[["w",[2],"float32"]]'
    with pytest.raises(FrameError):
        read_weights(b'[["w",[2],"float32","more"]]')


def test_builds_are_kept_by_content_and_never_by_name(tmp_path: Path, monkeypatch):
    built: list[Candidate] = []

    def fake(_: Any, __: Any, made: Candidate) -> dict[str, bytes]:
        built.append(made)
        return {"kernel": made.files[0].text.encode()}

    monkeypatch.setattr(build, "_build", fake)
    monkeypatch.setattr(build.shutil, "which", lambda name: f"/usr/bin/{name}")
    host = SimpleNamespace(home=tmp_path)
    evaluation: Any = SimpleNamespace(host=host, loaders={}, artifacts={}, request=request())
    other = SOURCE.replace("return 0", "return 1")
    for text in (SOURCE, other, SOURCE, other):
        build.prepare(evaluation, "candidate", candidate(text))
        assert evaluation.artifacts["candidate"] == {"kernel": text.encode()}

    assert len(built) == 2


def report(outcome: Any, **changes: Any) -> EvalReport:
    return EvalReport(
        verdict=outcome.verdict, outcome=outcome, environment=HERE, seed=ROOTS[0],
        request=request(), evaluator="1", **changes,
    )  # fmt: skip


def test_only_a_correct_candidate_has_a_speed_up():
    failed = Failed(stage="load", reason="exit", message="")

    assert report(Correct(), speedup=2.0).speedup == 2.0
    with pytest.raises(ValueError, match="speed-up"):
        report(failed, speedup=2.0)
    with pytest.raises(ValueError, match="verdict"):
        EvalReport.model_validate({**report(failed).model_dump(), "verdict": "correct"})


def test_the_same_work_is_known_by_its_content(tmp_path: Path):
    key = work_key(request(), HERE, "1")
    there = HERE.model_copy(update={"device_name": "b"})
    others = [
        work_key(request(candidate=candidate("// other\n" + SOURCE)), HERE, "1"),
        work_key(request(protocol="official"), HERE, "1"),
        work_key(request(rules=Rules(require_own_kernel=True)), HERE, "1"),
        work_key(request(), there, "1"),
        work_key(request(), HERE, "2"),
    ]

    assert len({key, *others}) == 6
    assert work_key(request(seed=ROOTS[1]), HERE, "1") == key
    remember(tmp_path, key, report(Correct()))
    remember(tmp_path, others[0], report(Unjudged(reason="no device", message="")))
    assert lookup(tmp_path, key) == report(Correct())
    assert lookup(tmp_path, others[0]) is None


class Mute:
    """A child that is there and says nothing, with as much memory as the test likes."""

    def __init__(self, resident: int = 0) -> None:
        ours, self._theirs = socket.socketpair()
        self.channel = Channel(ours)
        self.resident = resident
        self.applied = {"namespaces": "", "landlock": "not in this kernel"}
        self.killed = False

    def resident_bytes(self) -> int:
        return self.resident

    def cpu_s(self) -> float:
        return 0.0

    def kill(self) -> None:
        self.killed = True
        self.channel.close()
        self._theirs.close()


def ended(action: Any) -> Failed:
    start = time.monotonic()
    with pytest.raises(Ended) as caught:
        action()
    assert time.monotonic() - start < 2.0
    outcome = caught.value.outcome
    assert isinstance(outcome, Failed)
    return outcome


@pytest.mark.timeout(8)
@pytest.mark.parametrize(
    "action",
    [
        lambda side: side.ask("call", {}),
        lambda side: side.timed_call({}),
        lambda side: side.receive(time.monotonic() + 0.2),
    ],
)
def test_an_answer_is_waited_for_until_its_deadline(action):
    child: Any = Mute()
    side = Side("candidate", child, Limits(call_s=0.2), lambda: None, float("inf"))

    assert ended(lambda: action(side)).reason == "timeout"
    side.close()


@pytest.mark.timeout(8)
@pytest.mark.parametrize("action", [lambda s: s.ask("call", {}), lambda s: s.timed_call({})])
def test_the_whole_evaluation_has_a_deadline(action):
    child: Any = Mute()
    limits = Limits(call_s=60.0, total_s=0.2)
    side = Side("candidate", child, limits, lambda: None, time.monotonic() + 0.2)

    assert "whole evaluation" in ended(lambda: action(side)).message
    side.close()


@pytest.mark.timeout(8)
def test_memory_beyond_the_limit_ends_it():
    child: Any = Mute(resident=8 << 30)
    limits = Limits(call_s=60.0, memory_bytes=1 << 30)
    side = Side("candidate", child, limits, lambda: None, float("inf"))

    assert ended(lambda: side.ask("call", {})).reason == "out of memory"
    assert child.killed
    side.token.close()


def test_a_layer_that_is_off_is_recorded_as_off():
    from tilewright.evaluator.evaluation import Evaluation

    host: Any = SimpleNamespace()
    child: Any = Mute()
    evaluation = Evaluation(host, request(), ROOTS[0], lambda *_: None, lambda: None)
    evaluation.note_protections(child)

    assert evaluation.protections == (
        Protection(name="namespaces", active=True),
        Protection(name="landlock", active=False, detail="not in this kernel"),
    )
    for layers in (("landlock",), ("namespaces", "no such layer")):
        strict = Evaluation(
            host, request(require_layers=layers), ROOTS[0], lambda *_: None, lambda: None
        )
        with pytest.raises(Ended) as caught:
            strict.note_protections(child)
        assert caught.value.outcome.verdict == "unjudged"
    child.kill()


def test_a_judge_that_is_gone_is_our_failure():
    from tilewright.evaluator.evaluation import Evaluation

    host: Any = SimpleNamespace()
    evaluation = Evaluation(host, request(), ROOTS[0], lambda *_: None, lambda: None)
    with pytest.raises(InfrastructureError):
        evaluation.ask("draw", {})
