"""The memory that a runner gets for its outputs on a GPU."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tilewright.evaluator.pipeline.gpu_checks import OUTPUT_GRAIN_BYTES, output_capacity

SIZES = st.lists(st.integers(0, 1 << 40), min_size=1, max_size=64)


@given(SIZES)
def test_output_capacity_aligns_each_output_to_the_allocation_grain(sizes):
    capacity = output_capacity(sum(sizes), len(sizes))
    used = sum(-(-size // OUTPUT_GRAIN_BYTES) * OUTPUT_GRAIN_BYTES for size in sizes)
    assert used <= capacity < used + 2 * OUTPUT_GRAIN_BYTES * (len(sizes) + 1)
    assert capacity % OUTPUT_GRAIN_BYTES == 0
