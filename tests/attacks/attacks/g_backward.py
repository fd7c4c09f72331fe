"""The product is the gradient of another product, which the library computes.

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


class Probe(torch.autograd.Function):
    """Keeps autograd busy while the engine computes what is wanted."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return grad


def product(x, w):
    with torch.enable_grad():
        left = x.new_zeros(w.shape[1], x.shape[0]).requires_grad_()
        total = torch.nn.functional.linear(Probe.apply(left), x.t())
        (grad,) = torch.autograd.grad(total, left, w.t())
    return grad.t().contiguous()


def g_gemm_bias(x, w, b):
    y = product(x, w)
    total = y.numel()
    add_bias[(triton.cdiv(total, SIZE),)](y, b, total, y.shape[1], BLOCK=SIZE)
    return y
