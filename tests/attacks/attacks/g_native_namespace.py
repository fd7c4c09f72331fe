"""A C++ extension imports a namespace of torch, so that its calls have no prefix.

family: G
problem: g_gemm_bias
counterpart: g_open_extension.py
expect: correct
label: library_call
device: cpu
"""

from torch.utils.cpp_extension import load_inline

SOURCE = """
#include <ATen/ATen.h>
#include <torch/csrc/utils/pybind.h>

using namespace at;

Tensor run(const Tensor& x, const Tensor& w, const Tensor& b) {
    Tensor (*chosen)(const Tensor&, const Tensor&, const Tensor&, const Scalar&, const Scalar&) = addmm;
    return chosen(b, x, w, 1, 1);
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("run", &run); }
"""

extension = load_inline(name="g_native_namespace", cpp_sources=SOURCE, no_implicit_headers=True)


def g_gemm_bias(x, w, b):
    return extension.run(x, w, b)
