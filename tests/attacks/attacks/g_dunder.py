"""The product is a special method that is fetched from the class of its operand.

family: G
problem: g_gemm_bias
counterpart: g_open_matmul.py
expect: correct
label: library_call
device: cpu, cuda
"""

import torch
import triton
import triton.language as tl


# Triton's interpreter is fast on few large blocks, and its compiler on small ones.
SIZE = 1024 if torch.cuda.is_available() else 65536


@triton.jit
def add_bias(y_ptr, b_ptr, total, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < total
    y = tl.load(y_ptr + at, mask=inside)
    b = tl.load(b_ptr + at % n, mask=inside)
    tl.store(y_ptr + at, y + b, mask=inside)


def product(x, w):
    return type(x).__dict__.get("__matmul__", getattr(type(x), "__mat" + "mul__"))(x, w)


def g_gemm_bias(x, w, b):
    y = product(x, w)
    total = y.numel()
    add_bias[(triton.cdiv(total, SIZE),)](y, b, total, y.shape[1], BLOCK=SIZE)
    return y
