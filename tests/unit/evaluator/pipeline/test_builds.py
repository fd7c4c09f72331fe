"""Builds are refused early where they cannot succeed, and cached by all their inputs."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.unit.records.test_validation import REQUEST
from tilewright.evaluator.context import EvaluationContext
from tilewright.evaluator.devices import toolchain
from tilewright.evaluator.devices.devices import CPU
from tilewright.evaluator.pipeline import builds, prepare
from tilewright.evaluator.pipeline.builds import libraries_of
from tilewright.evaluator.pipeline.session import EvaluationSession
from tilewright.evaluator.processes.host import DeviceHost
from tilewright.evaluator.runners.messages import EvaluationEnded
from tilewright.evaluator.runners.pool import Build
from tilewright.languages.base import BuildPlan
from tilewright.records import Candidate, Failed, Outcome, SourceFile, Unjudged
from tilewright.registry import load
from tilewright.wire.frames import Frame, FrameError

CPP = '#include "tilewright.h"\nextern "C" int work() { return 0; }\n'
LIBRARIES = {"kernel": b"\x7fELF one", "other": b"\x7fELF two"}


def candidate(text: str = CPP, path: str = "work.cpp", language: str = "cpp") -> Candidate:
    return Candidate(language=language, files=(SourceFile(path=path, text=text),), entry="work")


def plan_of(given: Candidate) -> BuildPlan:
    plan: BuildPlan = load("languages", given.language).plan(given)
    return plan


@pytest.fixture
def ended(tmp_path: Path) -> Iterator[Callable[[Candidate], Outcome]]:
    """Yield a function that prepares a candidate and returns how that ended."""
    cores = os.sched_getaffinity(0)
    host = DeviceHost(tmp_path)

    def prepared(given: Candidate) -> Outcome:
        session = EvaluationSession(
            EvaluationContext(host, REQUEST, "0" * 32, lambda *_: None, lambda: None)
        )
        with pytest.raises(EvaluationEnded) as caught:
            prepare.build(session, "candidate", given)
        return caught.value.outcome

    yield prepared
    assert host.forkserver.pid is None
    host.close()
    os.sched_setaffinity(0, cores)


def test_python_that_does_not_parse_is_not_built(ended):
    outcome = ended(candidate("def work(:\n", "work.py", "torch"))

    assert isinstance(outcome, Failed)
    assert (outcome.stage, outcome.reason) == ("build", "syntax_error")
    assert outcome.message.startswith("work.py: ")


def test_cuda_without_a_device_is_not_judged(ended):
    outcome = ended(candidate('extern "C" int work(int n) { return n; }', "work.cu", "cuda"))

    assert isinstance(outcome, Unjudged)
    assert outcome.reason == "no_device"


def test_without_a_compiler_nothing_is_judged(ended, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    outcome = ended(candidate())

    assert isinstance(outcome, Unjudged)
    assert (outcome.reason, outcome.message) == ("no_compiler", "g++ is not installed")


def test_plain_python_needs_no_build(tmp_path):
    cores = os.sched_getaffinity(0)
    host = DeviceHost(tmp_path)
    session = EvaluationSession(
        EvaluationContext(host, REQUEST, "0" * 32, lambda *_: None, lambda: None)
    )
    plan = prepare.build(session, "candidate", candidate("work = 1\n", "work.py", "torch"))
    os.sched_setaffinity(0, cores)

    assert (plan.kind, session.runners.builds) == ("none", {"candidate": Build("python")})


def test_a_key_depends_on_all_that_a_build_reads(monkeypatch):
    def key(given: Candidate) -> str:
        return prepare.build_key(plan_of(given), given, CPU)

    plain = key(candidate())
    assert plain == key(candidate())
    keys = {plain, key(candidate(CPP + " "))}
    keys.add(key(candidate().model_copy(update={"entry": "other"})))
    for name, value in (
        ("toolchain", "g++ 99"),
        ("processor", "another"),
        ("headers", ["", "3.99", "torch 99"]),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(prepare, name, lambda value=value: value)
            keys.add(key(candidate()))

    assert len(keys) == 6


def test_a_build_key_knows_headers_toolchain_and_processor():
    ours, python, torch = toolchain.headers()

    assert "tw_tensor" in ours
    assert python.startswith("3.")
    assert torch
    assert "g++" in toolchain.toolchain() or toolchain.toolchain() == ""
    assert toolchain.processor()


def test_a_cached_build_is_read_back(tmp_path):
    folder = tmp_path / "builds" / "key"
    assert builds.read_cache(folder) is None
    builds.write_cache(folder, LIBRARIES)

    assert builds.read_cache(folder) == LIBRARIES
    assert [path.name for path in folder.parent.iterdir()] == ["key"]


@pytest.mark.parametrize("damage", ["index.json", "0.so"])
def test_a_damaged_cache_entry_counts_as_missing(tmp_path, damage):
    folder = tmp_path / "key"
    builds.write_cache(folder, LIBRARIES)
    (folder / damage).unlink()
    assert builds.read_cache(folder) is None

    (folder / "index.json").write_text("{")
    assert builds.read_cache(folder) is None


def test_a_second_build_of_the_same_changes_nothing(tmp_path):
    folder = tmp_path / "key"
    builds.write_cache(folder, LIBRARIES)
    builds.write_cache(folder, {"kernel": b"later"})

    assert builds.read_cache(folder) == LIBRARIES
    assert len(list(tmp_path.iterdir())) == 1


def test_a_cache_that_cannot_be_written_stops_nothing(tmp_path):
    (tmp_path / "builds").write_text("")
    builds.write_cache(tmp_path / "builds" / "key", LIBRARIES)

    assert (tmp_path / "builds").read_text() == ""


def test_readers_see_a_complete_cache_entry_or_none(tmp_path):
    folder, seen = tmp_path / "key", []
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            seen.append(builds.read_cache(folder))
        seen.append(builds.read_cache(folder))

    thread = threading.Thread(target=look)
    thread.start()
    builds.write_cache(folder, LIBRARIES)
    done.set()
    thread.join()

    assert all(item in (None, LIBRARIES) for item in seen)
    assert seen[-1] == LIBRARIES


def test_a_build_error_fails_the_candidate():
    fields = {"during": "build", "type": "BuildError", "message": "no", "traceback": ["a.py:1"]}
    with pytest.raises(EvaluationEnded) as caught:
        libraries_of(Frame("error", fields))

    assert caught.value.outcome == Failed(
        stage="build", reason="build", message="BuildError: no\na.py:1"
    )


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("built", {"artifacts": {"kernel": 3}}),
        ("built", {"artifacts": {"kernel": -1, "other": 3}}),
        ("built", {}),
        ("\ud800", {"artifacts": {"kernel": 2}}),
        ("error", {}),
    ],
)
def test_an_unexpected_message_of_the_builder_is_a_frame_error(kind, fields):
    with pytest.raises(FrameError) as caught:
        libraries_of(Frame(kind, fields, b"xy"))

    assert str(caught.value).encode()


def test_libraries_are_cut_from_the_body_in_order():
    frame = Frame("built", {"artifacts": {"a": 2, "b": 0, "c": 1}}, b"xyz")

    assert libraries_of(frame) == {"a": b"xy", "b": b"", "c": b"z"}


def test_the_least_recently_used_build_is_evicted_first(tmp_path):
    root = tmp_path / "builds"
    for age, name in enumerate(("old", "asked again", "new")):
        builds.write_cache(root / name, {"kernel": b"x" * 1000})
        os.utime(root / name, (1e9 + age, 1e9 + age))
    builds.read_cache(root / "old")
    os.utime(root / "asked again", (1e9, 1e9))
    builds.prune(root, most=10_000)
    assert len(list(root.iterdir())) == 3

    builds.prune(root, most=3000)
    assert sorted(path.name for path in root.iterdir()) == ["new", "old"]
