"""Published comparisons: the rules of KernelBench, KernelBench-X and TritonBench."""

from __future__ import annotations

import math

import pytest
import torch

from tilewright.evaluator.judge.official_comparison import compare_published
from tilewright.evaluator.judge_client.client import comparison_rule
from tilewright.problems.loader import find_problem

EPS = torch.finfo(torch.float32).eps
INF, NAN = math.inf, math.nan


def test_the_published_rule_is_allclose():
    value, rule = torch.tensor([1.0, 2.0]), {"name": "allclose", "tolerance": 1e-2}

    assert not compare_published(value, torch.tensor([1.0, 2.03]), rule).kind
    difference = compare_published(value, torch.tensor([1.0, 2.05]), rule)
    assert difference.kind == "values"
    assert "tolerance 0.01" in difference.message
    assert compare_published(value, torch.tensor([1.0, NAN]), rule).kind


@pytest.mark.parametrize(
    ("value", "output", "right"),
    [
        (torch.tensor([1.0, NAN]), torch.tensor([1.0, NAN]), True),
        (torch.tensor([1.0]), torch.tensor([1.0 + 1e-5]), True),
        (torch.tensor([1.0]), torch.tensor([1.0 + 3e-5]), False),
        (torch.tensor([1.0]).half(), torch.tensor([1.008]).half(), True),
        (torch.tensor([1.0]).half(), torch.tensor([1.012]).half(), False),
        (torch.tensor([1, 2]), torch.tensor([1, 2]), True),
        (torch.tensor([1, 2]), torch.tensor([1, 3]), False),
    ],
)
def test_kernelbenchx_compares_by_dtype(value, output, right):
    assert (not compare_published(value, output, {"name": "by_dtype"}).kind) is right


def quantized(relative: bool) -> dict[str, object]:
    thresholds = (0.95, 0.05, 0.10)
    task = find_problem("softmax").model_copy(
        update={"published": "by_dtype", "thresholds": thresholds}
    )
    rule = comparison_rule(task, "strict" if relative else "official")
    assert rule is not None
    return rule


def test_an_absolute_bound_refuses_textbook_quantization_and_a_relative_one_does_not():
    """Defect K2 of KernelBench-X: the error of 8 bits grows with what they hold."""
    generator = torch.Generator().manual_seed(0)
    value = 50 * torch.randn(64, 64, generator=generator)
    scale = value.abs().amax() / 127
    rounded = (value / scale).round() * scale

    assert compare_published(value, rounded, quantized(False)).kind == "values"
    assert not compare_published(value, rounded, quantized(True)).kind
    for wrong in (torch.zeros_like(value), value.flip(0), torch.full_like(value, NAN)):
        assert compare_published(value, wrong, quantized(True)).kind == "values"
        assert compare_published(value, wrong, quantized(False)).kind == "values"


@pytest.mark.parametrize("relative", [True, False])
def test_zeros_are_like_zeros_alone_by_the_rule_for_quantization(relative):
    zeros, ones = torch.zeros(4), torch.ones(4)
    assert not compare_published(zeros, zeros.clone(), quantized(relative)).kind
    assert compare_published(zeros, 1e-3 * ones, quantized(relative)).kind == "values"
    assert compare_published(ones, zeros, quantized(relative)).kind == "values"


def test_tritonbench_looks_at_no_value_where_tests_print_nothing():
    assert not compare_published(torch.ones(2), torch.zeros(2), {"name": "runs"}).kind
