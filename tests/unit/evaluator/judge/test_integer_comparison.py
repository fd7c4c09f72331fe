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
    MAX_MOVED_SHARE,
    Moves,
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
    # Few of many may differ as rounding moves them.
    within = not Moves.of(output, value).exceed(Moves.of(other, value))
    few = int((other - value).abs().sum()) <= MAX_MOVED_SHARE * int(value.sum())
    assert bool(said) == (wrong and not (within and few))


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
    value = torch.arange(1000)
    other, output = value.flip(0), value.roll(3)
    assert compare_integers(value, other, [OtherIntegers.of(value, other)]) == ""
    assert compare_integers(value, output, [OtherIntegers.of(value, other)]) != ""
