"""The reference's error on nominal inputs is the least that counts on a variation."""

from __future__ import annotations

import pytest
import torch

from tilewright.evaluator.judge.comparison import Expected, compare, expect
from tilewright.evaluator.judge.nominal_errors import NominalErrors


def inexact(share: float, seed: int = 1) -> Expected:
    oracle = torch.randn(64, 64, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    noise = torch.randn(64, 64, generator=torch.Generator().manual_seed(9), dtype=torch.float64)
    return expect((oracle + share * noise).float(), oracle)


def exact() -> Expected:
    whole = torch.randint(-90, 90, (64, 64), generator=torch.Generator().manual_seed(4)).double()
    return expect(whole.float(), whole)


def test_an_exact_reference_gets_the_error_of_nominal_inputs():
    known, item = NominalErrors(), exact()
    nominal = inexact(3e-7)
    known.note([nominal])
    (floored,) = known.floored([item])

    size = float(item.value.square().mean().sqrt())
    assert item.reference_error == 0.0
    assert floored.reference_error == pytest.approx(nominal.reference_error * size, rel=0.05)
    noise = torch.randn(64, 64, generator=torch.Generator().manual_seed(5))
    other = item.value + 6e-5 * noise
    assert compare(item, other).kind == "values"
    assert compare(floored, other).kind == ""
    # The error as a whole has its own limit.
    assert compare(floored, item.value + 20 * floored.reference_error).kind == "values"


def test_a_larger_error_stays_and_each_output_has_its_own():
    known = NominalErrors()
    known.note([inexact(1e-6), inexact(1e-4)])
    known.note([inexact(1e-5), inexact(1e-6)])
    rough = inexact(1e-2)
    first, second, third = known.floored([exact(), exact(), exact()])

    assert known.floored([rough]) == [rough]
    assert 5 < second.reference_error / first.reference_error < 20
    assert third.reference_error == 0.0


def test_integers_zeros_and_infinities_have_no_floor():
    known = NominalErrors()
    zeros = expect(torch.zeros(4), torch.zeros(4, dtype=torch.float64))
    known.note([zeros, expect(torch.arange(4), None)])
    assert known.floored([exact()])[0].reference_error == 0.0

    known.note([inexact(1e-5)])
    huge = torch.tensor([1.0, float("inf")], dtype=torch.float64)
    (item,) = known.floored([expect(huge.float(), huge)])
    assert 0 < item.reference_error < 1e-3


def softmax_gradient(times: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a softmax's gradient in float64, and what subtracting two float32 sums adds to it."""
    generator = torch.Generator().manual_seed(7)
    scores, grad = torch.randn(2, 256, 64, generator=generator).double()
    weights = (scores * times).softmax(-1)
    oracle = weights * (grad - (grad * weights).sum(-1, keepdim=True))
    return oracle, grad.norm(dim=1, keepdim=True) * 2.0**-22 * weights


@pytest.mark.parametrize("times", [32.0, 64.0])
def test_a_gradient_may_be_off_by_float32_roundings_where_a_variation_makes_it_zero(times):
    known = NominalErrors()
    nominal, _ = softmax_gradient(1.0)
    known.note([expect(nominal.bfloat16(), nominal)])
    oracle, rounding = softmax_gradient(times)
    item = expect(oracle.bfloat16(), oracle)
    assert (item.value.float().norm(dim=1) == 0).any()
    (floored,) = known.floored([item])
    assert compare(item, (oracle + rounding).bfloat16()).kind == "values"
    assert compare(floored, (oracle + rounding).bfloat16()).kind == ""
    assert compare(floored, (oracle + 64 * rounding).bfloat16()).kind == "values"


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_small_elements_that_the_problem_has_may_not_be_left_out(kind):
    points = torch.randn(64, 16, generator=torch.Generator().manual_seed(8)).double()
    oracle = (-torch.cdist(points, points).square()).exp()
    output = torch.eye(64, dtype=kind)
    known, item = NominalErrors(), expect(oracle.to(kind), oracle)
    known.note([item])
    assert compare(item, output).kind == "values"
    assert compare(known.floored([item])[0], output).kind == "values"


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_rows_that_are_small_on_a_variation_may_not_be_left_out(kind):
    known = NominalErrors()
    oracle = torch.randn(64, 128, generator=torch.Generator().manual_seed(9)).double()
    known.note([expect(oracle.to(kind), oracle)])
    oracle[::8] *= 2.0**-14
    output = oracle.to(kind)
    (item,) = known.floored([expect(output, oracle)])
    output = output.clone()
    output[::8] = 0
    assert compare(item, output).kind == "values"
