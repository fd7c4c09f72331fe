"""A C++ extension registered as a custom operator: an own loop reached through `torch.ops`.

family: A6
problem: add_relu
expect: correct
"""

import torch
from torch.utils.cpp_extension import load_inline

SOURCE = """
#include <ATen/ATen.h>
#include <torch/library.h>

at::Tensor add_relu(const at::Tensor& x, const at::Tensor& y) {
    auto a = x.contiguous(), b = y.contiguous();
    auto out = at::empty_like(a);
    const float *p = a.data_ptr<float>(), *q = b.data_ptr<float>();
    float* r = out.data_ptr<float>();
    for (int64_t i = 0; i < a.numel(); ++i) {
        float total = p[i] + q[i];
        r[i] = total < 0.0f ? 0.0f : total;
    }
    return out;
}

TORCH_LIBRARY(a6_own, m) { m.def("add_relu", add_relu); }
"""

load_inline(
    name="a6_torch_library_op",
    cpp_sources=SOURCE,
    extra_cflags=["-O3"],
    is_python_module=False,
    no_implicit_headers=True,
)


def add_relu(x, y):
    return torch.ops.a6_own.add_relu(x, y)
