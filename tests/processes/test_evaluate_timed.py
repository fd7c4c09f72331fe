"""Whole evaluations with a clock: what is timed, against which baselines, and what is not."""

from __future__ import annotations

import time

import pytest

from tests.processes.evaluations import (
    LIMITS,
    MODULE,
    MODULE_RIGHT,
    RIGHT,
    TIMED,
    TWICE,
    bench,
    candidate,
    problem,
    request,
)
from tests.processes.test_evaluate import (
    ABSOLUTE,
    CPP,
    TRITON_ABSOLUTE,
    codes,
    labels,
    needs_compiler,
)
from tilewright.errors import ProblemError
from tilewright.evaluator.timing.stop_rule import MIN_BLOCKS_IF_SLOW
from tilewright.problems.sets.gold_file import SEPARATOR, problem_of
from tilewright.records import Baseline, EvalReport, EvalRequest, Failed, Rejected

__all__ = ["bench"]
pytestmark = pytest.mark.timed

EAGER = (Baseline(name="eager", kind="eager"),)


def test_a_right_candidate_is_correct_and_timed(bench):
    asked = request(RIGHT + "print('hello')\n", timing=TIMED, baselines=EAGER)
    report = bench.judge(asked)

    assert report.verdict == "correct", report.outcome
    assert [item.case for item in report.comparisons] == ["small", "large"]
    # A machine under load may end a case early, or need three process replicates for it.
    assert all(item.blocks >= MIN_BLOCKS_IF_SLOW for item in report.comparisons)
    assert report.speedup_low <= report.speedup <= report.speedup_high
    assert report.candidate_output == "hello\n"
    stages = [stage["stage"] for stage in bench.named("stage")]
    assert [name for name in stages if name != "check_problem"] == [
        *("build", "device_wait", "start_judge", "load", "correctness"),
        *("timing", "shutdown", "ceilings", "cleanup"),
    ]
    assert {item.case for item in report.work} == {"small", "large"}
    assert report.ceilings.memory_bandwidth_bytes_per_s > 1e8
    assert report.operators.case == "large"
    assert [item.name for item in report.stages][-1] == "total"
    assert {"small", "large", *(f"hidden {n}" for n in range(1, 5))} == {
        c.case for c in report.cases
    }
    assert {c.input_variation for c in report.cases} == {"nominal", "sign"}
    assert all(c.result == "pass" for c in report.cases)
    assert EvalReport.from_json(report.to_json()) == report


@needs_compiler
def test_a_cpp_candidate_is_built_once_and_its_launches_suppressed(bench):
    asked = request(CPP, path="work.cpp", timing=TIMED, baselines=EAGER)
    first = bench.judge(asked)
    start = time.monotonic()
    again = bench.judge(request(CPP, path="work.cpp"))

    assert (first.verdict, again.verdict) == ("correct", "correct"), first.outcome
    assert "launch_suppression" in [item.name for item in first.stages]
    assert first.comparisons
    assert len(list((bench.host.home / "builds").iterdir())) == 1
    assert time.monotonic() - start < 20


def test_a_triton_candidate_is_judged_and_not_timed(bench):
    report = bench.judge(request(TRITON_ABSOLUTE, ABSOLUTE, timing=TIMED, baselines=EAGER))

    assert report.verdict == "correct", report.outcome
    assert "not_timed" in labels(report)
    assert report.comparisons == ()
    assert report.speedup is None


def test_overwritten_inputs_reject_the_candidate(bench):
    source = "def work(x):\n    return x.tanh_() * 2\n"
    report = bench.judge(request(source, timing=TIMED, baselines=EAGER))

    assert isinstance(report.outcome, Rejected)
    assert codes(report) == ["input_mutation"]
    assert "not_timed" in labels(report)


IN_PLACE = """import torch

def act(x, slope=0.01, *, inplace=False):
    return torch.nn.functional.leaky_relu(x, slope, inplace=inplace)
"""
GOLD = f"""{IN_PLACE}

{SEPARATOR}

def test_act():
    results = [act(torch.randn(50)), act(torch.randn(50), inplace=True)]
    try:
        act("nothing")
    except TypeError:
        pass
    return results

test_results = test_act()
print(test_results)
"""


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (IN_PLACE, "correct"),
        (IN_PLACE.replace("=inplace", "=False"), "correct"),
        (IN_PLACE.replace("=inplace", "=True"), "rejected"),
        (IN_PLACE.replace("slope, inplace", "slope + inplace, inplace"), "incorrect"),
    ],
)
def test_calls_of_a_gold_file_are_made_as_its_tests_make_them(bench, text, verdict):
    given = problem_of(GOLD, "tritonbench/t/act", "act.py")
    asked = EvalRequest(
        problem=given,
        candidate=candidate(text, given),
        timing=TIMED,
        baselines=EAGER,
        limits=LIMITS,
    )
    report = bench.judge(asked)

    assert report.verdict == verdict, report.outcome
    assert bool(report.comparisons) == (verdict == "correct")


def test_the_official_protocol_is_judged_by_its_own_rules(bench):
    source = RIGHT.replace("* 2", "* 2 + 1e-3").replace("torch.tanh(x)", "x.tanh()")
    report = bench.judge(request(source, protocol="official", timing=TIMED, baselines=EAGER))

    assert report.verdict == "correct", report.outcome
    assert len(report.cases) == 10
    assert {item.conclusion for item in report.comparisons} == {"no interval"}
    assert report.speedup is not None
    assert report.speedup_low is None


@pytest.mark.alone
def test_a_candidate_file_can_be_a_baseline_in_its_own_process(bench):
    slow = RIGHT.replace("    return", "    import time; time.sleep(0.002)\n    return")
    given = problem()
    baselines = (Baseline(name="slow", kind="candidate", candidate=candidate(slow, given)),)
    report = bench.judge(request(RIGHT, timing=TIMED, baselines=baselines))

    assert report.verdict == "correct", report.outcome
    assert {item.baseline for item in report.comparisons} == {"slow"}
    assert report.comparisons[0].conclusion == "faster"


@pytest.mark.nightly
def test_the_time_that_the_judge_compares_is_no_time_of_the_call(bench):
    """Without an eager baseline the judge evaluates the reference within each timed call."""
    slow = TWICE.replace("    return", "    import time; time.sleep(0.2)\n    return")
    one_case = slow.replace(', {"name": "large", "n": 60000}', "").replace("VARY", "_")
    given = problem(one_case)
    baselines = (Baseline(name="mine", kind="candidate", candidate=candidate(RIGHT, given)),)
    limits = LIMITS.model_copy(update={"call_timeout_s": 0.15})
    plan = TIMED.model_copy(update={"min_blocks": 4, "max_blocks": 4})
    report = bench.judge(request(RIGHT, one_case, timing=plan, baselines=baselines, limits=limits))

    assert report.verdict == "correct", report.outcome
    assert report.comparisons


@pytest.mark.parametrize("broken", ["def work(x):\n    raise KeyError(x)\n", "def work(:\n"])
def test_a_failing_baseline_does_not_fail_the_candidate(bench, broken):
    baselines = (Baseline(name="bad", kind="candidate", candidate=candidate(broken, problem())),)
    with pytest.raises(ProblemError, match="baseline 'bad' failed"):
        bench.judge(request(RIGHT, timing=TIMED, baselines=baselines))


def test_a_module_is_judged_with_new_weights(bench):
    report = bench.judge(request(MODULE_RIGHT, MODULE, timing=TIMED, baselines=EAGER))

    assert report.verdict == "correct", report.outcome
    assert labels(report) == []
    assert report.comparisons


def test_a_crash_in_a_timed_call_fails_the_candidate(bench):
    source = (
        "import os, torch\ncalls = []\ndef work(x):\n    calls.append(1)\n"
        "    if len(calls) > 25: os.abort()\n    return torch.tanh(x) * 2\n"
    )
    report = bench.judge(request(source, timing=TIMED, baselines=EAGER))

    assert isinstance(report.outcome, Failed)
    assert (report.outcome.stage, report.outcome.reason) == ("timing", "crash")
    assert "SIGABRT" in report.outcome.message


def test_outputs_may_lie_in_the_order_of_the_references(bench):
    text = TWICE.replace("torch.tanh(x) * 2", "(torch.tanh(x) * 2).t()")
    text = text.replace('torch.randn(case["n"],', 'torch.randn(case["n"], 3,')
    body = "import torch\ndef work(x):\n    y = torch.tanh(x) * 2\n    return "
    for returned, verdict in (
        ("y.t()", "correct"),
        ("y.t().contiguous()", "correct"),
        ("y.reshape(x.shape[1], x.shape[0])", "incorrect"),
        ("y.reshape(x.shape).t().contiguous().t().contiguous().t()", "correct"),
    ):
        asked = request(body + returned, text, timing=TIMED, baselines=EAGER)
        report = bench.judge(asked)
        assert report.verdict == verdict, (returned, report.outcome)
