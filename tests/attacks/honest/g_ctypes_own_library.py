"""A library that the candidate builds is called through ctypes with plain addresses.

family: G
problem: cumsum
expect: correct
device: cpu
"""

import ctypes

import torch
from torch.utils.cpp_extension import load_inline

SOURCE = """
#include <cstdint>

extern "C" void own_scan(const float* x, float* y, int64_t rows, int64_t cols) {
#pragma omp parallel for
    for (int64_t r = 0; r < rows; ++r) {
        double total = 0;
        for (int64_t c = 0; c < cols; ++c) y[r * cols + c] = total += x[r * cols + c];
    }
}
"""

place = load_inline(
    name="g_ctypes_own_library",
    cpp_sources=SOURCE,
    extra_cflags=["-O3", "-fopenmp"],
    is_python_module=False,
    no_implicit_headers=True,
)
scan = ctypes.CDLL(place).own_scan
scan.argtypes = [ctypes.c_void_p] * 2 + [ctypes.c_int64] * 2
scan.restype = None


def cumsum(x):
    y = torch.empty_like(x)
    scan(x.data_ptr(), y.data_ptr(), *x.shape)
    return y
