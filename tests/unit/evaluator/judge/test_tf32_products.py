"""The error of products whose factors are rounded to tf32, where the rules allow that."""

from __future__ import annotations

import math
import struct

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tilewright.evaluator.judge import inputs, reference, soundness
from tilewright.evaluator.judge.comparison import compare
from tilewright.evaluator.judge.tf32_products import allow_for_tf32, rounded_to_tf32
from tilewright.evaluator.judge_client.problem_messages import CheckHealth

PROBLEM = """import torch

torch.manual_seed(0)


def inputs(case, generator):
    return (torch.randn(case["rows"], 48, generator=generator),
            torch.randn(48, 40, generator=generator))


def reference(x, weight):
    {body}
"""
PRODUCT, TRANSFORM = "return x @ weight", "return torch.fft.rfft(x).abs() + weight.sum()"


def loaded(body, *, allowed=True):
    fields = {"problem_kind": "function", "mode": "train", "grads": [], "keywords": []}
    made = reference.load(PROBLEM.format(body=body), {**fields, "init_seed": 42})
    made.precision.allows_tf32 = allowed
    return made


def sample_of(made, seed=3, rows=64):
    return inputs.make_sample(made, {"rows": rows}, "nominal", seed, seed, double=True)


@given(st.floats(width=32))
def test_rounding_keeps_ten_bits(number):
    value = torch.tensor([number, -number])
    found = rounded_to_tf32(value)
    if not math.isfinite(number):
        assert torch.equal(found.isnan(), value.isnan())
        assert torch.equal(found.nan_to_num(), value.nan_to_num())
        return
    (bits,) = struct.unpack("<I", struct.pack("<f", float(found[0])))
    assert bits & 0x1FFF == 0
    assert float(found[1]) == -float(found[0])
    if math.isfinite(float(found[0])):
        distance = abs(float(found[0].double() - value[0].double()))
        assert distance <= max(abs(number) * 2.0**-11, 2.0**-137)


@pytest.mark.parametrize(
    ("body", "products"),
    [
        (PRODUCT, True),
        ("return torch.nn.functional.linear(x, weight.t())", True),
        ("return torch.einsum('ik,kj->ij', x, weight)", True),
        ("return torch.nn.functional.conv1d(x[:, None], weight[:4, None, :3])", True),
        (TRANSFORM, False),
        ("return x.double() @ weight.double()", False),
        ("return (x[:, :, None] * weight).sum(1)", False),
    ],
)
def test_the_check_finds_products(body, products):
    message = CheckHealth({"rows": 8}, ["nominal"], 5, strict=True)
    assert soundness.check(loaded(body), message, None).tf32 is products


def test_factors_in_tf32_are_right_where_they_are_allowed():
    for allowed in (True, False):
        sample = sample_of(loaded(PRODUCT, allowed=allowed))
        x, weight = sample.arguments()
        right = rounded_to_tf32(x) @ rounded_to_tf32(weight)
        wrong = (x.bfloat16() @ weight.bfloat16()).float()
        (expected,) = sample.expected
        assert not compare(expected, x @ weight).kind
        assert bool(compare(expected, right).kind) is not allowed
        assert compare(expected, wrong).kind


def test_rows_that_are_ill_conditioned_may_be_off_by_more():
    """The library computes them in float32: nothing but rounded factors shows their error."""
    body = "return (x @ weight * 8).softmax(-1) @ weight.t()"
    for seed in range(4):
        sample = sample_of(loaded(body), seed=seed, rows=256)
        x, weight = sample.arguments()
        # Another scale, so that other bits are lost.
        scores = rounded_to_tf32(x * 0.7) @ rounded_to_tf32(weight / 0.7) * 8
        right = rounded_to_tf32(scores.softmax(-1)) @ rounded_to_tf32(weight.t())
        scores = (x.bfloat16() @ weight.bfloat16()).float() * 8
        (expected,) = sample.expected
        assert not compare(expected, right).kind
        assert compare(expected, scores.softmax(-1) @ weight.t()).kind


def test_a_case_without_larger_errors_is_not_evaluated_again():
    made = loaded(TRANSFORM)
    expected = sample_of(made).expected
    evaluations = []

    def evaluate():
        evaluations.append(1)
        return [item.value for item in expected]

    assert allow_for_tf32(made, {"rows": 64}, expected, evaluate) == expected
    assert not evaluations
    assert allow_for_tf32(made, {"rows": 65}, expected, evaluate) == expected
    assert evaluations


def test_each_case_is_decided_by_itself():
    made = loaded("return x @ weight if len(x) > 8 else x.tanh() + weight.sum()")
    sample_of(made, rows=4)
    sample_of(made, rows=64)
    assert sorted(made.precision.tf32_cases.values()) == [False, True]


def test_a_reference_that_fails_in_the_mode_keeps_its_own_error():
    body = (
        "from torch.utils._python_dispatch import _get_current_dispatch_mode\n"
        "    if _get_current_dispatch_mode() is not None:\n"
        "        raise ValueError('no modes')\n"
        "    return x @ weight"
    )
    (own,) = sample_of(loaded(body)).expected
    (plain,) = sample_of(loaded(PRODUCT, allowed=False)).expected
    assert own.reference_error == plain.reference_error
