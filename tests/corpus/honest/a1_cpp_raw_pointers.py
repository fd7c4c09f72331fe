"""A C++ extension that is handed addresses, as many bindings do: its writes are its own work.

family: A1
problem: add_relu
expect: correct
"""

import torch
from torch.utils.cpp_extension import load_inline

SOURCE = """
#include <cstdint>
#include <pybind11/pybind11.h>

void add_relu(uintptr_t x, uintptr_t y, uintptr_t z, int64_t count) {
    const float *a = (const float*)x, *b = (const float*)y;
    float* out = (float*)z;
    for (int64_t i = 0; i < count; ++i) {
        float total = a[i] + b[i];
        out[i] = total < 0.0f ? 0.0f : total;
    }
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("add_relu", &add_relu); }
"""

extension = load_inline(
    name="a1_cpp_raw_pointers", cpp_sources=SOURCE, extra_cflags=["-O3"], no_implicit_headers=True
)


def add_relu(x, y):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    extension.add_relu(x.data_ptr(), y.data_ptr(), out.data_ptr(), x.numel())
    return out
