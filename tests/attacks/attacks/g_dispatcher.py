"""A C++ extension looks the product up in torch's dispatcher by a name made at run time.

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
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/utils/pybind.h>

using namespace c10;

at::Tensor run(const at::Tensor& x, const at::Tensor& w, const at::Tensor& b) {
    static const std::string name = std::string("aten") + "::" + "add" + "mm";
    static auto found = Dispatcher::singleton().findSchemaOrThrow(name.c_str(), "");
    Stack stack{b, x, w, at::Scalar(1), at::Scalar(1)};
    found.callBoxed(&stack);
    return stack.back().toTensor();
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("run", &run); }
"""

extension = load_inline(name="g_dispatcher", cpp_sources=SOURCE, no_implicit_headers=True)


def g_gemm_bias(x, w, b):
    return extension.run(x, w, b)
