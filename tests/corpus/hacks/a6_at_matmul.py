"""Library laundering: a C++ extension that only calls the operators of ATen.

family: A6
problem: matmul_bias_gelu
expect: correct
label: library_call
twin: a6_own_loops.py
source: robust-evaluation A6 (KernelBench-Hard, critiques of CUDA-L1)
"""

from torch.utils.cpp_extension import load_inline

SOURCE = """
#include <ATen/ATen.h>
#include <torch/csrc/utils/pybind.h>

at::Tensor fused(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
    return at::gelu(at::matmul(x, weight) + bias);
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("fused", &fused); }
"""

extension = load_inline(name="a6_at_matmul", cpp_sources=SOURCE, no_implicit_headers=True)


def matmul_bias_gelu(x, weight, bias):
    return extension.fused(x, weight, bias)
