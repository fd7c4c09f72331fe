"""The operation count of a reference follows torch's formulas."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from tilewright.evaluator.judge import ceilings

F = torch.nn.functional


@pytest.mark.parametrize(
    ("work", "operations"),
    [
        (lambda: torch.randn(64, 32) @ torch.randn(32, 16), 2 * 64 * 32 * 16),
        (lambda: F.linear(torch.randn(8, 32), torch.randn(16, 32), torch.randn(16)), 8192),
        (lambda: torch.einsum("bij,bjk->bik", torch.randn(2, 3, 4), torch.randn(2, 4, 5)), 240),
        (
            lambda: F.conv2d(torch.randn(1, 3, 16, 16), torch.randn(4, 3, 3, 3)),
            2 * 14 * 14 * 4 * 27,
        ),
        (lambda: F.layer_norm(torch.randn(4, 8), (8,)), 0),
        (lambda: torch.randn(8).relu(), 0),
    ],
)
def test_only_matrix_products_are_counted(work, operations):
    with torch.no_grad():
        result, counted = ceilings.counted(work)
    assert counted == operations
    assert isinstance(result, torch.Tensor)


def test_counting_operations_does_not_import_the_compiler():
    program = """
import sys, torch
from tilewright.evaluator.judge import ceilings

with torch.no_grad():
    ceilings.counted(lambda: torch.randn(4, 4) @ torch.randn(4, 4))
assert not ceilings.Operations._should_skip_dynamo()
assert "torch._inductor.compile_fx" not in sys.modules
"""
    # Another test of this process may have imported it.
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_reference_that_cannot_be_counted_runs_without_the_counter():
    calls = []

    def work() -> torch.Tensor:
        calls.append(len(calls))
        if len(calls) == 1:
            raise NotImplementedError("not under a mode")
        return torch.zeros(1)

    result, counted = ceilings.counted(work)
    assert (counted, calls, result.item()) == (None, [0, 1], 0.0)


@pytest.mark.parametrize(
    ("dtypes", "name"),
    [
        ((torch.float16,), "fp16"),
        ((torch.int64, torch.bfloat16), "bf16"),
        ((torch.float32,), "fp32"),
        ((torch.int64,), "fp32"),
    ],
)
def test_products_are_compared_with_the_ceiling_of_their_precision(dtypes, name):
    outputs = [torch.zeros(1, dtype=dtype) for dtype in dtypes]
    assert ceilings.precision_of(outputs) == name
