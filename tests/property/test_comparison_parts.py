"""A comparison by chunks equals that of the whole; what no tolerance excuses is wrong with any."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.evaluator.judge import comparison
from tilewright.evaluator.judge.comparison import compare, expect, with_sensitivity
from tilewright.evaluator.judge.wider_tolerance import excludes_widening

ODD = (math.nan, math.inf, -math.inf, 0.0, 1e30)


@settings(deadline=None, max_examples=80)
@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=4),
    st.integers(0, 2**31),
    st.integers(0, 3),
    st.integers(0, 2),
    st.integers(1, 40),
    st.booleans(),
)
def test_comparison_by_chunks_equals_comparison_of_the_whole(
    shape, seed, slips, odd, at_once, centred
):
    generator = torch.Generator().manual_seed(seed)
    oracle = torch.randn(shape, generator=generator, dtype=torch.float64)
    value, output = oracle.float(), oracle.float().clone()
    for count, size in ((slips, None), (odd, ODD)):
        for _ in range(count):
            place = int(torch.randint(0, output.numel(), (1,), generator=generator))
            which = 0 if size is None else int(torch.randint(0, 5, (1,), generator=generator))
            flat = output.view(-1)
            flat[place] = flat[place] * 1.5 + 1e-3 if size is None else size[which]
    expected = expect(value, oracle)
    center = value.clone() if centred else None

    whole = compare(expected, output, center)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(comparison, "CHUNK_ELEMENTS", at_once)
        parts = compare(expected, output, center)

    assert parts == whole


@settings(deadline=None, max_examples=120)
@given(
    st.integers(0, 2**31),
    st.integers(1, 4000),
    st.floats(0.0, 0.02),
    st.floats(-8.0, 1.0),
    st.floats(-9.0, 0.0),
    st.booleans(),
)
def test_an_output_that_excludes_a_wider_tolerance_is_wrong_with_each(
    seed, count, share, size, sensitivity, short
):
    generator = torch.Generator().manual_seed(seed)
    oracle = torch.randn(count, 4, generator=generator, dtype=torch.float64)
    value = oracle.bfloat16() if short else oracle.float()
    moved = torch.rand(oracle.shape, generator=generator) < share
    output = torch.where(moved, oracle + 10.0**size, value.double()).to(value.dtype)
    expected = expect(value, oracle)
    wider = with_sensitivity(expected, torch.full_like(oracle, 10.0**sensitivity))

    if excludes_widening(expected, output):
        assert compare(expected, output).kind == "values"
        assert compare(wider, output).kind == "values"


def test_an_output_without_any_work_excludes_a_wider_tolerance():
    oracle = torch.randn(64, 64, dtype=torch.float64)
    expected = expect(oracle.float(), oracle)

    assert excludes_widening(expected, torch.zeros(64, 64))
    assert not excludes_widening(expected, oracle.float() * (1 + 1e-5))
    few = oracle.float()
    few[3, 3] += 1
    assert not excludes_widening(expected, few)
