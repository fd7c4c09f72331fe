"""Whole evaluations in real processes, for every verdict."""

from __future__ import annotations

import os
import shutil

import pytest

from tests.processes.evaluations import (
    LIMITS,
    RIGHT,
    TWICE,
    Bench,
    bench,
    request,
)
from tilewright.errors import ProblemError
from tilewright.records import (
    EvalReport,
    Failed,
    Incorrect,
    Rejected,
    Unjudged,
)

__all__ = ["bench"]

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


def test_an_idle_judge_serves_the_next_candidate(bench):
    bench.judge(request(RIGHT))
    before = bench.inits()
    report = bench.judge(request(RIGHT + "# again\n"))

    assert report.verdict == "correct"
    assert len(before) == 1
    assert bench.inits() == before


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


def test_donated_inputs_may_be_overwritten(bench):
    source = "def work(x):\n    return x.tanh_().mul_(2)\n"
    report = bench.judge(request(source, TWICE + '\nDONATES = ["x"]\n'))

    assert report.verdict == "correct", report.findings


@pytest.mark.parametrize(
    ("old", "new", "step"),
    [
        ("import torch\n", "import torch, nothing_of_this_name\n", "loading the problem"),
        ("torch.randn(case", "torch.randn(cases", "generating inputs"),
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

    kept = "import torch\nlast = {}\ndef work(x):\n    if x.shape not in last:\n"
    kept += "        last[x.shape] = torch.nn.functional.dropout(x, 0.5)\n"
    kept += "    return last[x.shape]\n"
    # Five elements may agree by chance.
    large = dropout.replace('{"name": "small", "n": 5}, ', "").replace("(1, 5000)", "(500, 5000)")
    report = bench.judge(request(kept, large))
    assert isinstance(report.outcome, Incorrect), report.outcome
    assert report.outcome.message.startswith("the outputs are those of an earlier call")


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
