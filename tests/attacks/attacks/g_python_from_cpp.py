"""A C++ extension calls torch's Python interface for the product.

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

at::Tensor run(const at::Tensor& x, const at::Tensor& w, const at::Tensor& b) {
    namespace py = pybind11;
    py::object host = py::module_::import("torch");
    py::object made = host.attr((std::string("add") + "mm").c_str())(b, x, w);
    return made.cast<at::Tensor>();
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("run", &run); }
"""

extension = load_inline(name="g_python_from_cpp", cpp_sources=SOURCE, no_implicit_headers=True)


def g_gemm_bias(x, w, b):
    return extension.run(x, w, b)
