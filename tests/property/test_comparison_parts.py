"""A comparison by chunks equals a comparison of the whole output."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.evaluator.judge import comparison
from tilewright.evaluator.judge.comparison import compare, expect

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
