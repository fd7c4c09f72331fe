"""A candidate that is right without its own kernels does not use them."""

from __future__ import annotations

import pytest

from tests.in_process_evaluator import a_request
from tilewright.evaluator.pipeline import launch_suppression
from tilewright.records import Rules

PROBLEM = """import torch

CASES = [{"name": "small", "n": 16}, {"name": "large", "n": 48}]
VARY = {"sizes": {"n": [1, 64]}}


def inputs(case, generator):
    return (torch.rand(case["n"], 8, generator=generator),)


def reference(x):
    return x * 3 + 1, x.sum(-1)
"""
HONEST = """import torch


def work(x):
    return x * 3 + 1, x.sum(-1)
"""
CPP = """#include "tilewright.h"

extern "C" int work(const tw_tensor* in, int n_in, tw_tensor* out, int n_out) {
    const float* x = (const float*)in[0].data;
    float* y = (float*)out[0].data;
    float* s = (float*)out[1].data;
    for (int64_t i = 0; i < in[0].shape[0]; ++i) {
        s[i] = 0;
        for (int64_t j = 0; j < 8; ++j) {
            y[i * 8 + j] = x[i * 8 + j] * 3 + 1;
            s[i] += x[i * 8 + j];
        }
    }
    return 0;
}
"""
KERNELS = """import torch
import shim


def work(x):
    y = (torch.zeros_like(x), torch.zeros_like(x[:, 0]))

    def kernel():
        y[0].copy_(x * 3 + 1)
        y[1].copy_(x.sum(-1))

    shim.launch(kernel)
    return {answer}
"""


@pytest.mark.parametrize(
    ("answer", "verdict"), [("y", "correct"), ("x * 3 + 1, x.sum(-1)", "rejected")]
)
def test_a_candidate_that_is_right_with_suppressed_launches_is_rejected(evaluator, answer, verdict):
    source = KERNELS.replace("{answer}", answer)
    report = evaluator.judge(a_request(PROBLEM, source, language="triton"))

    assert report.verdict == verdict
    assert (verdict == "rejected") == (
        "unused_kernel" in [finding.code for finding in report.findings]
    )


CAPTURED = KERNELS.replace("import shim", "import shim\n\nseen = []").replace(
    "    shim.launch(kernel)\n",
    "    (kernel if seen else lambda: shim.launch(kernel))()\n    seen.append(1)\n",
)


LOST = KERNELS.replace("return {answer}", "return y if y[0].any() else 1 // 0")


@pytest.mark.reads_settings
@pytest.mark.parametrize(
    ("source", "verdict", "again", "labels"),
    [
        (KERNELS.replace("{answer}", "y"), "correct", False, []),
        (KERNELS.replace("{answer}", "x * 3 + 1, x.sum(-1)"), "rejected", True, []),
        (CAPTURED.replace("{answer}", "y"), "correct", True, []),
        (LOST, "correct", False, ["exit_unverified"]),
    ],
    ids=["honest", "unused_kernel", "replays what it captured", "fails without"],
)
def test_a_runner_that_is_costly_to_start_is_suppressed_itself_before_it_ends(
    evaluator, monkeypatch, source, verdict, again, labels
):
    monkeypatch.setattr(launch_suppression, "_may_end_suppressed", lambda _: True)
    report = evaluator.judge(a_request(PROBLEM, source, language="triton"))

    assert report.verdict == verdict
    assert ('"suppressed": true' in evaluator.told()) is again
    assert [item.name for item in report.labels if item.name == "exit_unverified"] == labels


def test_a_kernel_that_is_never_launched_is_unused(evaluator):
    report = evaluator.judge(a_request(PROBLEM, HONEST, language="triton"))

    assert [finding.code for finding in report.findings] == ["unused_kernel"]
    rules = Rules(require_custom_kernel=True)
    assert evaluator.judge(a_request(PROBLEM, HONEST, rules=rules)).verdict == "rejected"


FALLBACK = """import torch
import shim


def broken():
    raise RuntimeError("no such function")


def work(x):
    try:
        shim.launch(broken)
        return torch.zeros_like(x), torch.zeros_like(x[:, 0])
    except RuntimeError:
        return x * 3 + 1, x.sum(-1)
"""


def test_a_kernel_whose_launch_always_raises_is_unused(evaluator):
    report = evaluator.judge(a_request(PROBLEM, FALLBACK, language="triton"))

    assert [finding.code for finding in report.findings] == ["unused_kernel"]
    assert report.findings[0].evidence["launches"] == 0
    assert '"launches_fail": true' in evaluator.told()


def test_a_launch_that_the_counter_misses_rejects_nobody(evaluator):
    source = KERNELS.replace("shim.launch", "shim.launch_unseen").replace("{answer}", "y")
    report = evaluator.judge(a_request(PROBLEM, source, language="triton"))

    assert report.verdict == "correct"


PROBLEM_OF_ONE = """import torch

CASES = [{"name": "some", "rows": ROWS}]


def inputs(case, generator):
    return (torch.rand(case["rows"], 8, generator=generator),)


def reference(x):
    return MADE
"""


@pytest.mark.parametrize(
    ("rows", "made"), [("0", "x * 3"), ("4", "torch.zeros_like(x)")], ids=["no elements", "zero"]
)
def test_an_output_that_proves_nothing_rejects_nobody(evaluator, rows, made):
    problem = PROBLEM_OF_ONE.replace("ROWS", rows).replace("MADE", made)
    source = f"import torch\n\n\ndef work(x):\n    return {made}\n"
    # Under `strict` such a problem is unsound, and no candidate is run.
    report = evaluator.judge(a_request(problem, source, language="triton", protocol="official"))

    assert report.verdict == "correct"
    assert "unused_kernel" not in [finding.code for finding in report.findings]


def test_another_case_than_one_without_elements_decides(evaluator):
    problem = PROBLEM_OF_ONE.replace("MADE", "x * 3").replace(
        "ROWS}]", '4}, {"name": "none", "rows": 0}]'
    )
    source = "def work(x):\n    return x * 3\n"
    report = evaluator.judge(a_request(problem, source, language="triton"))

    assert [finding.code for finding in report.findings] == ["unused_kernel"]


IN_PLACE = """import torch

CASES = [{"name": "turned", "factor": 3.0}, {"name": "kept", "factor": 1.0}]


def inputs(case, generator):
    return torch.rand(8, 8, generator=generator), case["factor"]


def reference(x, factor):
    return x.mul_(factor)
"""


@pytest.mark.parametrize("launch", ["shim.launch", "shim.launch_unseen"])
def test_an_argument_that_is_right_as_it_was_proves_nothing(evaluator, launch):
    source = f"import shim\n\n\ndef work(x, f):\n    {launch}(lambda: x.mul_(f))\n    return x\n"
    report = evaluator.judge(a_request(IN_PLACE, source, language="triton"))

    assert report.verdict == "correct", report.findings


def test_a_denied_label_rejects(evaluator):
    source = KERNELS.replace("{answer}", "y")
    rules = Rules(deny_labels=("library_call",))
    report = evaluator.judge(a_request(PROBLEM, source, language="triton", rules=rules))

    assert report.verdict == "rejected"


def test_launch_suppression_of_a_native_kernel_changes_its_output(evaluator):
    report = evaluator.judge(a_request(PROBLEM, CPP, language="cpp"))

    assert report.verdict == "correct"
    assert '"suppressed": true' in evaluator.told()
    assert report.stages[-1].name == "total"
