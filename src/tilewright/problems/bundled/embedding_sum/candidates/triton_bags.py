"""Each program sums a few bags over the whole width of the table, one place at a time."""

import triton
import triton.language as tl


@triton.jit
def embedding_sum_kernel(
    indices_ptr, table_ptr, out_ptr, bags, bag, width,
    BLOCK_BAGS: tl.constexpr, BLOCK_WIDTH: tl.constexpr,
):
    row = tl.program_id(0) * BLOCK_BAGS + tl.arange(0, BLOCK_BAGS)
    col = tl.arange(0, BLOCK_WIDTH)[None, :]
    inside = (row < bags)[:, None] & (col < width)
    total = tl.zeros((BLOCK_BAGS, BLOCK_WIDTH), dtype=tl.float32)
    for place in range(0, bag):
        entry = tl.load(indices_ptr + row * bag + place, mask=row < bags, other=0)
        total += tl.load(table_ptr + entry[:, None] * width + col, mask=inside, other=0.0)
    tl.store(out_ptr + row[:, None] * width + col, total, mask=inside)


def embedding_sum(indices, table):
    indices, table = indices.contiguous(), table.contiguous()
    bags, bag = indices.shape
    width = table.shape[1]
    out = table.new_empty(bags, width)
    grid = (triton.cdiv(bags, 32),)
    embedding_sum_kernel[grid](
        indices, table, out, bags, bag, width,
        BLOCK_BAGS=32, BLOCK_WIDTH=triton.next_power_of_2(width),
    )
    return out
