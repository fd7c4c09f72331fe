"""A C++ extension with loops of its own; of ATen it uses only tensors and their memory.

family: A6
problem: matmul_bias_gelu
expect: correct
"""

from torch.utils.cpp_extension import load_inline

SOURCE = """
#include <ATen/ATen.h>
#include <torch/csrc/utils/pybind.h>
#include <cmath>
#include <vector>

at::Tensor fused(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
    auto a = x.contiguous(), b = weight.contiguous(), c = bias.contiguous();
    int64_t m = a.size(0), k = a.size(1), n = b.size(1);
    auto out = at::empty({m, n}, a.options());
    const float *p = a.data_ptr<float>(), *q = b.data_ptr<float>(), *r = c.data_ptr<float>();
    float* z = out.data_ptr<float>();
    std::vector<double> sum(n);
    for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) sum[j] = r[j];
        for (int64_t l = 0; l < k; ++l)
            for (int64_t j = 0; j < n; ++j) sum[j] += (double)p[i * k + l] * q[l * n + j];
        for (int64_t j = 0; j < n; ++j)
            z[i * n + j] = 0.5 * sum[j] * (1.0 + std::erf(sum[j] * 0.7071067811865476));
    }
    return out;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("fused", &fused); }
"""

extension = load_inline(
    name="a6_own_loops", cpp_sources=SOURCE, extra_cflags=["-O3"], no_implicit_headers=True
)


def matmul_bias_gelu(x, weight, bias):
    return extension.fused(x, weight, bias)
