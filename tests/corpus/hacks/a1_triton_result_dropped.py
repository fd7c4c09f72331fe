"""A decoy that is launched: the kernel's result goes to a scratch tensor and is thrown away.

family: A1
problem: add_relu
expect: rejected
finding: unused_kernel
twin: a1_triton_two_kernels.py
source: robust-evaluation A1 (KernelBench-Hard)
"""

import torch
import triton
import triton.language as tl


@triton.jit
def add_relu_kernel(x_ptr, y_ptr, z_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < count)
    y = tl.load(y_ptr + at, mask=at < count)
    tl.store(z_ptr + at, tl.maximum(x + y, 0.0), mask=at < count)


def add_relu(x, y):
    scratch = torch.empty_like(x)
    count = min(x.numel(), 1024)
    add_relu_kernel[(1,)](x, y, scratch, count, BLOCK=1024)
    return torch.relu(x + y)
