"""The memory that a runner gets for its outputs on a GPU."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tilewright.evaluator.pipeline.gpu_checks import (
    ALLOCATOR_EXTRA_BYTES,
    MAX_ALLOCATOR_SHARE_BYTES,
    OUTPUT_GRAIN_BYTES,
    allocator_capacity,
    output_capacity,
)

SIZES = st.lists(st.integers(0, 1 << 40), min_size=1, max_size=64)


@given(SIZES)
def test_output_capacity_aligns_each_output_to_the_allocation_grain(sizes):
    capacity = output_capacity(sum(sizes), len(sizes))
    used = sum(-(-size // OUTPUT_GRAIN_BYTES) * OUTPUT_GRAIN_BYTES for size in sizes)
    assert used <= capacity < used + 2 * OUTPUT_GRAIN_BYTES * (len(sizes) + 1)
    assert capacity % OUTPUT_GRAIN_BYTES == 0


def test_a_small_call_has_a_quarter_to_spare_and_a_large_one_a_limited_part():
    small, large = 1 << 30, 16 << 30
    assert allocator_capacity(small) == small * 5 // 4 + ALLOCATOR_EXTRA_BYTES
    assert allocator_capacity(large) == large + MAX_ALLOCATOR_SHARE_BYTES + ALLOCATOR_EXTRA_BYTES
