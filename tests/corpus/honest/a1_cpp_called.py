"""A C++ extension that does the work on tensors.

family: A1
problem: add_relu
expect: correct
"""

from torch.utils.cpp_extension import load_inline

SOURCE = """
#include <ATen/ATen.h>
#include <torch/csrc/utils/pybind.h>

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

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("add_relu", &add_relu); }
"""

extension = load_inline(
    name="a1_cpp_called", cpp_sources=SOURCE, extra_cflags=["-O3"], no_implicit_headers=True
)


def add_relu(x, y):
    return extension.add_relu(x, y)
