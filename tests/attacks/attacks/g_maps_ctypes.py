"""The product is `sgemm_` in torch's library, found through a list of mapped files.

family: G
problem: g_gemm_bias
counterpart: g_open_matmul.py
expect: correct
label: library_call
device: cpu
"""

import torch
import triton
import triton.language as tl
import ctypes



@triton.jit
def add_bias(y_ptr, b_ptr, total, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < total
    y = tl.load(y_ptr + at, mask=inside)
    b = tl.load(b_ptr + at % n, mask=inside)
    tl.store(y_ptr + at, y + b, mask=inside)


def routine():
    with open("/proc/self/maps") as lines:
        paths = {line.split()[-1] for line in lines if "libtorch_cpu" in line}
    library = ctypes.CDLL(paths.pop())
    return getattr(library, "sgem" + "m_")


SGEMM = routine()


def product(x, w):
    (m, k), n = x.shape, w.shape[1]
    y = x.new_empty(m, n)
    one, none = ctypes.c_float(1), ctypes.c_float(0)
    rows, inner, columns = ctypes.c_int(m), ctypes.c_int(k), ctypes.c_int(n)
    by = ctypes.byref
    SGEMM(
        b"N", b"N", by(columns), by(rows), by(inner), by(one), ctypes.c_void_p(w.data_ptr()),
        by(columns), ctypes.c_void_p(x.data_ptr()), by(inner), by(none),
        ctypes.c_void_p(y.data_ptr()), by(columns),
    )
    return y


def g_gemm_bias(x, w, b):
    y = product(x, w)
    total = y.numel()
    add_bias[(triton.cdiv(total, 65536),)](y, b, total, y.shape[1], BLOCK=65536)
    return y
