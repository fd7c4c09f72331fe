"""Two kernels over whole rows: the loss of each row with its maximum and sum, and the gradient."""

import torch
import triton
import triton.language as tl


@triton.jit
def forward_kernel(
    logits_ptr, targets_ptr, losses_ptr, tops_ptr, others_ptr, sums_ptr, rows, classes,
    BLOCK_ROWS: tl.constexpr, BLOCK_COLS: tl.constexpr,
):
    row = tl.program_id(0) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)
    col = tl.arange(0, BLOCK_COLS)[None, :]
    source = tl.minimum(row, rows - 1)              # a row past the end repeats the last one
    target = tl.load(targets_ptr + source)
    x = tl.load(
        logits_ptr + source[:, None] * classes + col, mask=col < classes, other=float("-inf")
    )
    top = tl.max(x, axis=1)
    shifted = x - top[:, None]
    e = tl.exp(shifted)
    hit = col == target[:, None]
    at_target = tl.sum(tl.where(hit, shifted, 0.0), axis=1)
    others = tl.sum(tl.where(hit, 0.0, e), axis=1)
    total = others + tl.exp(at_target)
    tl.store(losses_ptr + row, tl.log(total) - at_target, mask=row < rows)
    tl.store(tops_ptr + row, top, mask=row < rows)
    tl.store(others_ptr + row, others, mask=row < rows)
    tl.store(sums_ptr + row, total, mask=row < rows)


@triton.jit
def mean_kernel(values_ptr, mean_ptr, count, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    values = tl.load(values_ptr + index, mask=index < count, other=0.0)
    tl.store(mean_ptr, tl.sum(values, axis=0) / count)


@triton.jit
def backward_kernel(
    logits_ptr, targets_ptr, tops_ptr, others_ptr, sums_ptr, grad_ptr, out_ptr, rows, classes,
    BLOCK_ROWS: tl.constexpr, BLOCK_COLS: tl.constexpr,
):
    row = tl.program_id(0) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)
    col = tl.arange(0, BLOCK_COLS)[None, :]
    source = tl.minimum(row, rows - 1)
    target = tl.load(targets_ptr + source)
    top = tl.load(tops_ptr + source)
    others = tl.load(others_ptr + source)
    factor = tl.load(grad_ptr) / (tl.load(sums_ptr + source) * rows)
    inside = (row < rows)[:, None] & (col < classes)
    where = source[:, None] * classes + col
    e = tl.exp(tl.load(logits_ptr + where, mask=inside, other=float("-inf")) - top[:, None])
    # At the target the gradient is p - 1 = -(sum of the others), which does not cancel.
    gradient = tl.where(col == target[:, None], -others[:, None], e) * factor[:, None]
    tl.store(out_ptr + where, gradient, mask=inside)


class CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, targets):
        logits = logits.contiguous()
        rows, classes = logits.shape
        block_cols = triton.next_power_of_2(classes)
        block_rows = min(16, max(1, 16384 // block_cols))
        ctx.blocks = {"BLOCK_ROWS": block_rows, "BLOCK_COLS": block_cols, "num_warps": 8}
        ctx.grid = (triton.cdiv(rows, block_rows),)
        losses, tops, others, sums = (logits.new_empty(rows) for _ in range(4))
        loss = logits.new_empty(())
        forward_kernel[ctx.grid](
            logits, targets, losses, tops, others, sums, rows, classes, **ctx.blocks
        )
        mean_kernel[(1,)](losses, loss, rows, BLOCK=triton.next_power_of_2(rows))
        ctx.save_for_backward(logits, targets, tops, others, sums)
        return loss

    @staticmethod
    def backward(ctx, grad):
        logits, targets, tops, others, sums = ctx.saved_tensors
        rows, classes = logits.shape
        out = torch.empty_like(logits)
        backward_kernel[ctx.grid](
            logits, targets, tops, others, sums, grad, out, rows, classes, **ctx.blocks
        )
        return out, None


def cross_entropy(logits, targets):
    return CrossEntropy.apply(logits, targets)
