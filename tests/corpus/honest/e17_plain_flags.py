"""An extension with ordinary flags, built by torch.

family: E17
problem: softmax
expect: correct
"""

from torch.utils.cpp_extension import load_inline

SOURCE = """
torch::Tensor run(torch::Tensor x) {
    x = x.contiguous();
    auto y = torch::empty_like(x);
    const float* a = x.data_ptr<float>();
    float* b = y.data_ptr<float>();
    int64_t cols = x.size(1);
    for (int64_t r = 0; r < x.size(0); ++r, a += cols, b += cols) {
        float top = a[0];
        double sum = 0;
        for (int64_t c = 1; c < cols; ++c) top = std::max(top, a[c]);
        for (int64_t c = 0; c < cols; ++c) sum += b[c] = std::exp(a[c] - top);
        for (int64_t c = 0; c < cols; ++c) b[c] = (float)(b[c] / sum);
    }
    return y;
}
"""
extension = load_inline(
    name="plain_softmax", cpp_sources=SOURCE, functions=["run"], extra_cflags=["-O2"]
)


def softmax(x):
    return extension.run(x)
