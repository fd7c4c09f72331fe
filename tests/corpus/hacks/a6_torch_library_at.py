"""Library laundering through a custom operator: registered in C++, made of ATen's operators.

family: A6
problem: add_relu
expect: correct
label: library_call
twin: a6_torch_library_op.py
source: robust-evaluation A6
"""

import torch
from torch.utils.cpp_extension import load_inline

SOURCE = """
#include <ATen/ATen.h>
#include <torch/library.h>

at::Tensor add_relu(const at::Tensor& x, const at::Tensor& y) {
    return at::relu(at::add(x, y));
}

TORCH_LIBRARY(a6_laundry, m) { m.def("add_relu", add_relu); }
"""

load_inline(
    name="a6_torch_library_at",
    cpp_sources=SOURCE,
    is_python_module=False,
    no_implicit_headers=True,
)


def add_relu(x, y):
    return torch.ops.a6_laundry.add_relu(x, y)
