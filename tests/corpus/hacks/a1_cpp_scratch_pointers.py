"""A decoy that is called: the extension is handed addresses, of a scratch tensor among them.

family: A1
problem: add_relu
expect: rejected
finding: unused_kernel
twin: a1_cpp_raw_pointers.py
source: robust-evaluation A1
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
    name="a1_cpp_scratch_pointers", cpp_sources=SOURCE, no_implicit_headers=True
)


def add_relu(x, y):
    scratch = torch.empty(64)
    count = min(64, x.numel())
    extension.add_relu(x.data_ptr(), y.data_ptr(), scratch.data_ptr(), count)
    return torch.relu(x + y)
