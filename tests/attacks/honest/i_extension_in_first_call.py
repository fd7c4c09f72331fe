"""A C++ extension is built in the first call.

family: I
problem: i_affine
expect: correct
device: cpu
"""

from torch.utils.cpp_extension import load_inline

SOURCE = """
#include <ATen/ATen.h>
#include <torch/csrc/utils/pybind.h>

at::Tensor run(const at::Tensor& x) {
    auto a = x.contiguous();
    auto out = at::empty_like(a);
    const float* p = a.data_ptr<float>();
    float* q = out.data_ptr<float>();
    for (int64_t i = 0; i < a.numel(); ++i) q[i] = 3.0f * p[i] + 1.0f;
    return out;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("run", &run); }
"""

BUILT = []


def i_affine(x):
    if not BUILT:
        name = "i_extension_in_first_call"
        BUILT.append(load_inline(name=name, cpp_sources=SOURCE, no_implicit_headers=True))
    return BUILT[0].run(x)
