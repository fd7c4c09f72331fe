"""A softmax by a CUDA extension that is built when this file is imported."""

from pathlib import Path

from torch.utils.cpp_extension import load_inline

KERNEL = (
    "#include <torch/extension.h>\n"
    + (Path(__file__).parent / "rows.cuh").read_text()
    + """
torch::Tensor softmax(torch::Tensor x) {
    auto y = torch::empty_like(x);
    rows<<<x.size(0), 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), (int)x.size(1));
    return y;
}
"""
)
own = load_inline(
    "own",
    cpp_sources="torch::Tensor softmax(torch::Tensor x);",
    cuda_sources=KERNEL,
    functions=["softmax"],
)


def work(x):
    return own.softmax(x)
