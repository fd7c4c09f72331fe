"""A C++ extension openly calls the library's product with a bias.

family: G
problem: g_gemm_bias
expect: correct
label: library_call
device: cpu
"""

from torch.utils.cpp_extension import load_inline

SOURCE = """
#include <ATen/ATen.h>
#include <torch/csrc/utils/pybind.h>

at::Tensor run(const at::Tensor& x, const at::Tensor& w, const at::Tensor& b) {
    return at::addmm(b, x, w);
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("run", &run); }
"""

extension = load_inline(name="g_open_extension", cpp_sources=SOURCE, no_implicit_headers=True)


def g_gemm_bias(x, w, b):
    return extension.run(x, w, b)
