"""Outputs of integers that rounding decides: quantised numbers, for example."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.evaluator.judge.test_inputs import sampled
from tests.unit.evaluator.judge.test_reference import load
from tilewright.evaluator.judge.comparison import compare
from tilewright.evaluator.judge.integer_comparison import OtherIntegers, compare_integers
from tilewright.evaluator.judge.wider_tolerance import widen_tolerance

pytestmark = pytest.mark.usefixtures("problem_module")

QUANTISE = """
import torch

def inputs(case, generator):
    return torch.randn(256, 1024, generator=generator)

def reference(x):
    return torch.round(x / (x.abs().amax(-1, keepdim=True) / 127)).to(torch.int8)
"""
NUMBERS = st.lists(st.integers(0, 2), min_size=1, max_size=200)


@given(NUMBERS, st.data())
def test_few_and_many_other_integers_excuse_the_same(numbers, data):
    value = torch.tensor(numbers)
    other, output = (
        torch.tensor(data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)))
        for n in (len(numbers), len(numbers))
    )
    said = compare_integers(value, output, [OtherIntegers(other)])
    assert compare_integers(value, output, [OtherIntegers.of(value, other)]) == said
    assert bool(said) == bool(((output != value) & (output != other)).any())


def test_few_other_integers_take_little_memory():
    value = torch.zeros(6400, dtype=torch.int8)
    few, many = value.clone(), value.clone()
    few[:100], many[:101] = 1, 1
    assert OtherIntegers.of(value, few).is_sparse
    assert not OtherIntegers.of(value, many).is_sparse


def quantised(x: torch.Tensor, shift: float = 0.0) -> torch.Tensor:
    """Return what multiplies by a reciprocal instead of dividing twice."""
    return torch.round(x * (127 / x.abs().amax(-1, keepdim=True)) + shift).to(torch.int8)


def test_numbers_on_the_limit_between_two_integers_may_be_rounded_to_either():
    reference = load(QUANTISE)
    moved = 0
    for seed in range(12):
        sample = sampled(reference, seed=seed)
        (x,) = sample.arguments()
        moved += int((quantised(x) != sample.expected[0].value).sum())
        widen_tolerance(reference, sample)
        assert compare(sample.expected[0], quantised(x)).kind == ""
        # A shift of a thousandth is beyond any rounding.
        assert compare(sample.expected[0], quantised(x, 1e-3)).kind == "values"
        assert compare(sample.expected[0], quantised(x, -1e-3)).kind == "values"
    assert moved > 0
