"""The check of a problem within evaluations: verdicts, labels, and the stored result."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.processes.evaluations import Bench, bench, request
from tilewright.errors import ProblemError
from tilewright.evaluator.pipeline.problem_check import read_health, write_health
from tilewright.records import EvalReport, Unjudged
from tilewright.records.problem_health import ProblemHealth

__all__ = ["bench"]

PROBLEM = """
import torch

ENTRY = "work"
CASES = [{{"name": "small", "n": 500}}]

def inputs(case, generator):
    return (torch.randn(case["n"], generator=generator),)

def reference(x):
    return {body}
"""
ZEROS = "import torch\ndef work(x):\n    return torch.zeros_like(x)\n"
CONSTANT = PROBLEM.format(body="torch.relu(x) * 0 + 0.0")


def stored(bench: Bench) -> list[Path]:
    return sorted((bench.host.home / "problem-checks").glob("*/*.json"))


def checks_of(report: EvalReport) -> int:
    return sum(stage.name == "check_problem" for stage in report.stages)


def test_an_unsound_problem_has_no_strict_verdict_and_is_checked_once(bench):
    report = bench.judge(request(ZEROS, CONSTANT))
    assert isinstance(report.outcome, Unjudged)
    assert report.outcome.reason == "unsound_problem"
    assert "zeros" in report.outcome.message
    assert bench.named("problem_check") == [{"case": "small"}]
    again = bench.judge(request("def work(x):\n    return 1 +\n", CONSTANT))
    assert isinstance(again.outcome, Unjudged)
    assert (checks_of(again), bench.named("problem_check")) == (0, [])


def test_published_rules_judge_an_unsound_problem_and_label_it(bench):
    report = bench.judge(request(ZEROS, CONSTANT, protocol="official"))
    assert report.verdict == "correct"
    assert [label.name for label in report.labels] == ["unsound_problem"]


def test_a_weak_problem_is_judged_and_labelled_each_time(bench):
    asked = request("def work(x):\n    return x.clone()\n", PROBLEM.format(body="x.clone()"))
    for checks in (1, 0):
        report = bench.judge(asked)
        assert (report.verdict, checks_of(report)) == ("correct", checks)
        assert [label.name for label in report.labels] == ["weak_problem"]
        assert "copy of an input" in report.labels[0].detail


def test_a_sound_problem_has_no_label(bench):
    source = "import torch\ndef work(x):\n    return torch.tanh(x)\n"
    report = bench.judge(request(source, PROBLEM.format(body="torch.tanh(x)")))
    assert (report.verdict, report.labels) == ("correct", ())


def test_a_damaged_stored_check_is_made_again(bench):
    asked = request(ZEROS, PROBLEM.format(body="torch.zeros_like(x) - 0.0"))
    before = set(stored(bench))
    bench.judge(asked)
    (path,) = set(stored(bench)) - before
    for damage in ('{"version": 1', "", '{"version": 0}', "\udcff"):
        path.write_bytes(damage.encode("utf-8", "surrogateescape"))
        assert checks_of(bench.judge(asked)) == 1
        assert read_health(path) is not None
    other = read_health(path).model_copy(update={"version": 0})
    write_health(path, other)
    assert checks_of(bench.judge(asked)) == 1
    assert not list(path.parent.glob(".new-*"))


def test_a_generator_that_cannot_be_run_twice_is_an_error_of_the_problem(bench):
    text = CONSTANT.replace("def inputs", "left = [torch.randn(500)]\n\ndef inputs").replace(
        'torch.randn(case["n"], generator=generator)', "left.pop()"
    )
    with pytest.raises(ProblemError, match="cannot be run twice"):
        bench.judge(request(ZEROS, text))


def test_two_writers_leave_a_whole_check(tmp_path):
    health = ProblemHealth(
        version=1,
        evaluator="x",
        problem_digest="d",
        protocol="strict",
        cases=({"case": "c" * 5000, "sample_s": 0.0},),
    )
    path = tmp_path / "aa" / "b.json"
    threads = [
        threading.Thread(target=lambda: [write_health(path, health) for _ in range(50)])
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    seen = []
    while any(thread.is_alive() for thread in threads):
        if path.exists():
            seen.append(read_health(path) == health)
    assert seen
    assert all(seen)
