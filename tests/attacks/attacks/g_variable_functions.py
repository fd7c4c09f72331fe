"""The product goes through a private table of functions of torch.

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


TABLE = vars(type(torch._C._VariableFunctions)) or vars(torch._C._VariableFunctions)


def product(x, w):
    run = getattr(torch._C._VariableFunctions, "add" + "mm")
    return run(x.new_zeros(1), x, w, beta=0)


def g_gemm_bias(x, w, b):
    y = product(x, w)
    total = y.numel()
    add_bias[(triton.cdiv(total, SIZE),)](y, b, total, y.shape[1], BLOCK=SIZE)
    return y
