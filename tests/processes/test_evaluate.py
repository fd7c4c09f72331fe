"""Whole evaluations in real processes, for every verdict."""

from __future__ import annotations

import os
import shutil
import time

import pytest

from tests.processes.evaluations import (
    LIMITS,
    MODULE,
    MODULE_RIGHT,
    RIGHT,
    TIMED,
    TWICE,
    Bench,
    bench,
    candidate,
    problem,
    request,
)
from tilewright.errors import ProblemError
from tilewright.problems.sets.gold_file import SEPARATOR, problem_of
from tilewright.records import (
    Baseline,
    EvalReport,
    EvalRequest,
    Failed,
    Incorrect,
    Rejected,
    Unjudged,
)

__all__ = ["bench"]

EAGER = (Baseline(name="eager", kind="eager"),)
CPP = """
#include <math.h>
#include "tilewright.h"

extern "C" int work(const tw_tensor* in, int n_in, tw_tensor* out, int n_out) {
    const float* x = (const float*)in[0].data;
    float* y = (float*)out[0].data;
    for (int64_t i = 0; i < in[0].shape[0]; ++i) y[i] = 2.0 * tanh((double)x[i]);
    return 0;
}
"""
TRITON = """
import torch
import triton
import triton.language as tl

@triton.jit
def kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    e = tl.exp(-2 * tl.abs(x))
    y = 2 * (1 - e) / (1 + e)
    tl.store(y_ptr + at, tl.where(x < 0, -y, y), mask=at < n)

def work(x):
    y = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 8192),)](x, y, x.numel(), BLOCK=8192)
    return y
"""
ABSOLUTE = TWICE.replace("torch.tanh(x) * 2", "x + x")
TRITON_ABSOLUTE = (
    TRITON.replace("    e = tl.exp(-2 * tl.abs(x))\n", "")
    .replace("    y = 2 * (1 - e) / (1 + e)\n", "")
    .replace("tl.where(x < 0, -y, y)", "x + x")
)
needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")


def codes(report: EvalReport) -> list[str]:
    return [item.code for item in report.findings if item.weight == "decisive"]


def labels(report: EvalReport) -> list[str]:
    return [item.name for item in report.labels]


def test_a_right_candidate_is_correct_and_timed(bench):
    asked = request(RIGHT + "print('hello')\n", timing=TIMED, baselines=EAGER)
    report = bench.judge(asked)

    assert report.verdict == "correct", report.outcome
    assert [item.case for item in report.comparisons] == ["small", "large"]
    assert all(item.blocks == 6 for item in report.comparisons)
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


def test_an_idle_judge_serves_the_next_candidate(bench):
    bench.judge(request(RIGHT))
    before = bench.inits()
    report = bench.judge(request(RIGHT + "# again\n"))

    assert report.verdict == "correct"
    assert len(before) == 1
    assert bench.inits() == before


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


@needs_compiler
def test_a_build_that_fails_shows_the_compiler(bench):
    report = bench.judge(request(CPP.replace("tanh", "tnah"), path="work.cpp"))

    assert isinstance(report.outcome, Failed)
    assert (report.outcome.stage, report.outcome.reason) == ("build", "build")
    assert "work.cpp:8" in report.outcome.message
    assert "tnah" in report.outcome.message


@needs_compiler
def test_a_build_that_never_ends_is_stopped(bench):
    source = (
        "from torch.utils.cpp_extension import load_inline\n"
        "while True: pass\nload_inline('x', '')\ndef work(x): return x\n"
    )
    limits = LIMITS.model_copy(update={"build_s": 1.0})
    report = bench.judge(request(source, limits=limits))

    assert isinstance(report.outcome, Failed)
    assert (report.outcome.stage, report.outcome.reason) == ("build", "timeout")


@needs_compiler
@pytest.mark.parametrize("forged", ["b'garbage' * 9", "frame", "b''"])
def test_a_build_that_forges_frames_fails(bench, forged):
    source = f"""
import json, os, stat, struct
from torch.utils.cpp_extension import load_inline
header = json.dumps({{"kind": "built", "body": 0, "artifacts": {{"kernel": 3}}}}).encode()
frame = struct.pack(">I", len(header)) + header
for fd in range(3, 64):
    try:
        if stat.S_ISSOCK(os.fstat(fd).st_mode):
            os.write(fd, {forged})
            os.close(fd)
    except OSError:
        pass
os._exit(0)
load_inline("x", "")
def work(x): return x
"""
    report = bench.judge(request(source))

    assert isinstance(report.outcome, Failed)
    assert (report.outcome.stage, report.outcome.reason) == ("build", "build")


def test_a_triton_candidate_is_judged_and_not_timed(bench):
    report = bench.judge(request(TRITON_ABSOLUTE, ABSOLUTE, timing=TIMED, baselines=EAGER))

    assert report.verdict == "correct", report.outcome
    assert "not_timed" in labels(report)
    assert report.comparisons == ()
    assert report.speedup is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # Launched, but its output is not what is returned; and never launched at all.
        ("    return y", "    return x + x"),
        ("    kernel[", "    return x + x\n    kernel["),
    ],
)
def test_an_unused_kernel_is_rejected(bench, old, new):
    report = bench.judge(request(TRITON_ABSOLUTE.replace(old, new), ABSOLUTE))

    assert isinstance(report.outcome, Rejected)
    assert codes(report) == ["unused_kernel"]


def test_bfloat16_in_the_interpreter_is_not_judged(bench):
    half = ABSOLUTE.replace("generator=generator)", "generator=generator).bfloat16()")
    report = bench.judge(request(TRITON_ABSOLUTE, half))

    assert isinstance(report.outcome, Unjudged)
    assert report.outcome.reason == "bf16_unsupported_in_interpreter"


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ("* 2", "* 2.0001", "values"),
        ("torch.tanh(x) * 2", "torch.tanh(x) * 2 + float('nan')", "nonfinite"),
        ("torch.tanh(x) * 2", "(torch.tanh(x) * 2).double()", "dtype"),
        ("torch.tanh(x) * 2", "(torch.tanh(x) * 2)[:-1]", "shape"),
        ("torch.tanh(x) * 2", "torch.tanh(x) * 2, x", "count"),
        ("torch.tanh(x) * 2", "None", "count"),
    ],
)
def test_a_wrong_output_is_incorrect(bench, old, new, kind):
    report = bench.judge(request(RIGHT.replace(old, new)))

    assert isinstance(report.outcome, Incorrect)
    assert (report.outcome.kind, report.outcome.case) == (kind, "small, nominal")
    assert report.cases[-1].result == "fail"


def test_a_candidate_that_is_wrong_only_at_other_sizes_is_found(bench):
    source = RIGHT.replace("    return", "    if x.numel() not in (5, 60000):\n"
                           "        return torch.tanh(x)\n    return")  # fmt: skip
    report = bench.judge(request(source))

    assert isinstance(report.outcome, Incorrect)
    assert report.outcome.case.startswith("hidden")


def test_overwritten_inputs_reject_the_candidate(bench):
    source = "def work(x):\n    return x.tanh_() * 2\n"
    report = bench.judge(request(source, timing=TIMED, baselines=EAGER))

    assert isinstance(report.outcome, Rejected)
    assert codes(report) == ["input_mutation"]
    assert "not_timed" in labels(report)


def test_donated_inputs_may_be_overwritten(bench):
    source = "def work(x):\n    return x.tanh_().mul_(2)\n"
    report = bench.judge(request(source, TWICE + '\nDONATES = ["x"]\n'))

    assert report.verdict == "correct", report.findings


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


def test_a_candidate_file_can_be_a_baseline_in_its_own_process(bench):
    slow = RIGHT.replace("    return", "    import time; time.sleep(0.002)\n    return")
    given = problem()
    baselines = (Baseline(name="slow", kind="candidate", candidate=candidate(slow, given)),)
    report = bench.judge(request(RIGHT, timing=TIMED, baselines=baselines))

    assert report.verdict == "correct", report.outcome
    assert {item.baseline for item in report.comparisons} == {"slow"}
    assert report.comparisons[0].conclusion == "faster"


@pytest.mark.parametrize("broken", ["def work(x):\n    raise KeyError(x)\n", "def work(:\n"])
def test_a_failing_baseline_does_not_fail_the_candidate(bench, broken):
    baselines = (Baseline(name="bad", kind="candidate", candidate=candidate(broken, problem())),)
    with pytest.raises(ProblemError, match="baseline 'bad' failed"):
        bench.judge(request(RIGHT, timing=TIMED, baselines=baselines))


@pytest.mark.parametrize(
    ("old", "new", "step"),
    [
        ("import torch\n", "import torch, nothing_of_this_name\n", "loading the problem"),
        ("torch.randn(case", "torch.randn(cases", "drawing inputs"),
        ("torch.tanh(x) * 2", "x @ x @ x", "running the reference"),
    ],
)
def test_a_failing_problem_is_named_with_its_step(bench, old, new, step):
    with pytest.raises(ProblemError, match=f"test: {step}"):
        bench.judge(request(RIGHT, TWICE.replace(old, new)))


def test_a_random_problem_is_not_judged_unless_the_stream_is_reproduced(bench):
    dropout = TWICE.replace("torch.tanh(x) * 2", "torch.nn.functional.dropout(x, 0.5)")
    same = "import torch\ndef work(x):\n    return torch.nn.functional.dropout(x, 0.5)\n"
    other = "import torch\ndef work(x):\n    return x * (torch.randn_like(x) > 0) * 2\n"

    assert bench.judge(request(same, dropout)).verdict == "correct"
    report = bench.judge(request(other, dropout))
    assert isinstance(report.outcome, Unjudged)
    assert report.outcome.reason == "nondeterministic_reference"


def test_without_a_required_layer_no_candidate_runs(bench):
    marker = bench.host.home / "ran"
    source = f"open({str(marker)!r}, 'w')\n{RIGHT}"
    report = bench.judge(request(source, require_isolation=("levitation",)))

    assert isinstance(report.outcome, Unjudged)
    assert report.outcome.reason == "isolation_unavailable"
    assert "levitation" in report.outcome.message
    assert not marker.exists()


def test_the_layers_are_reported(bench):
    report = bench.judge(request(RIGHT))
    names = {item.name for item in report.isolation}

    assert {"seccomp", "rlimits", "network", "environment"} <= names
    assert all(item.detail for item in report.isolation if not item.active)


@pytest.mark.alone
def test_an_evaluation_leaves_no_descriptors_or_memory_behind(bench: Bench):
    bench.judge(request(RIGHT))
    before = len(os.listdir("/proc/self/fd")), len(os.listdir("/dev/shm"))
    for source in (RIGHT, RIGHT.replace("* 2", "* 3"), "import os\nos._exit(3)\ndef work(x): 0\n"):
        bench.judge(request(source))

    assert (len(os.listdir("/proc/self/fd")), len(os.listdir("/dev/shm"))) == before
    assert len(bench.inits()) == 1


def test_a_module_is_judged_with_new_weights(bench):
    report = bench.judge(request(MODULE_RIGHT, MODULE, timing=TIMED, baselines=EAGER))

    assert report.verdict == "correct", report.outcome
    assert labels(report) == []
    assert report.comparisons
