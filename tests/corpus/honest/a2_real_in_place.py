"""An own kernel that works in place on the candidate's own copy, and is needed.

family: A2
problem: add_relu
expect: correct
"""

import triton
import triton.language as tl


@triton.jit
def add_relu_kernel(z_ptr, y_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    z = tl.load(z_ptr + at, mask=at < count)
    z += tl.load(y_ptr + at, mask=at < count)
    tl.store(z_ptr + at, tl.where(z < 0.0, 0.0, z), mask=at < count)


def add_relu(x, y):
    z = x.clone()
    count = z.numel()
    add_relu_kernel[(triton.cdiv(count, 65536),)](z, y, count, BLOCK=65536)
    return z
