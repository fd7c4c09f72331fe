"""Outputs of integers that rounding decides: quantised numbers, for example."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.evaluator.judge.test_inputs import sampled
from tests.unit.evaluator.judge.test_reference import load
from tilewright.evaluator.judge.comparison import compare
from tilewright.evaluator.judge.integer_comparison import (
    OtherIntegers,
    compare_integers,
)
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
    wrong = bool(((output != value) & (output != other)).any())
    assert wrong or not said
    assert said or not wrong or int(output.sum()) == int(value.sum())


@pytest.mark.parametrize("kind", [torch.bool, torch.int8, torch.uint8])
def test_only_counts_may_move(kind):
    value = torch.ones(10_000, dtype=kind)
    value[::2] = 0
    other, output = value.clone(), value.clone()
    other[:8] = other[:8].flip(0)
    output[100:108] = output[100:108].flip(0)
    assert compare_integers(value, other, [OtherIntegers.of(value, other)]) == ""
    assert compare_integers(value, output, [OtherIntegers.of(value, other)]) != ""


def test_indices_that_rounding_puts_in_another_order_may_not_move():
    value = torch.arange(10_000)
    other, output = value.clone(), value.clone()
    other[:2] = other[:2].flip(0)
    output[100:102] = torch.tensor([101, 100])
    assert compare_integers(value, output, [OtherIntegers.of(value, other)]) != ""


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


HISTOGRAM = """
import torch

def inputs(case, generator):
    return torch.rand(1_000_000, generator=generator)

def reference(x):
    low, high = x.min(), x.max()
    place = ((x - low) / (high - low) * 100).long().clamp(max=99)
    return torch.bincount(place, minlength=100)
"""


def counted(x: torch.Tensor, width: float = 100.0) -> torch.Tensor:
    """Return what multiplies by a reciprocal instead of dividing."""
    low, high = x.aminmax()
    place = ((x - low) * (width / (high - low))).int().clamp_(max=99)
    return torch.bincount(place, minlength=100)


def test_counts_may_move_as_rounding_moves_them():
    reference, moved = load(HISTOGRAM), 0
    for seed in range(3):
        sample = sampled(reference, seed=seed)
        (x,) = sample.arguments()
        right = counted(x)
        moved += int((right != sample.expected[0].value).sum())
        widen_tolerance(reference, sample)
        assert compare(sample.expected[0], right).kind == ""
        for wrong in (counted(x, 100.001), counted(x[:-1000]), right.roll(1), right + 1):
            assert compare(sample.expected[0], wrong).kind == "values"
    assert moved > 0


def test_rounding_that_changes_much_excuses_no_other_change():
    value, change = torch.full((1000,), 10), torch.tensor([5, -5]).repeat(500)
    other, output = value + change, value - change
    assert compare_integers(value, other, [OtherIntegers.of(value, other)]) == ""
    assert compare_integers(value, output, [OtherIntegers.of(value, other)]) != ""
