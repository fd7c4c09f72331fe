"""Twenty small programs, each with the legal actions that a person listed for it."""

from __future__ import annotations

from typing import NamedTuple

HEAD = """
import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl
"""
RELU = """
@triton.jit
def relu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(y_ptr + offsets, tl.maximum(x, 0.0), mask=offsets < n)
"""
ADD = """
@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    y = tl.load(y_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, x + y, mask=offsets < n)
"""
MATMUL = """
@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, M, N, K, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inner = tl.arange(0, BLOCK)
    a_ptrs = a_ptr + rows[:, None] * K + inner[None, :]
    b_ptrs = b_ptr + inner[:, None] * N + columns[None, :]
    total = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for k in range(0, K, BLOCK):
        total += tl.dot(tl.load(a_ptrs), tl.load(b_ptrs))
        a_ptrs += BLOCK
        b_ptrs += BLOCK * N
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], total)
"""
SOFTMAX = """
@triton.jit
def _softmax_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + offsets, mask=offsets < n, other=-float("inf"))
    top = tl.max(x, axis=0)
    e = tl.exp(x - top)
    total = tl.sum(e, axis=0)
    tl.store(y_ptr + row * n + offsets, e / total, mask=offsets < n)
"""


class ActionProgram(NamedTuple):
    """A program, its language, and its legal actions as sentences."""

    name: str
    language: str
    code: str
    actions: tuple[str, ...]


def program(name: str, code: str, *actions: str, language: str = "triton") -> ActionProgram:
    return ActionProgram(name, language, code if language == "cpp" else HEAD + code, actions)


PROGRAMS = (
    program(
        "one elementwise kernel",
        RELU + "def f(x):\n    y = torch.empty_like(x)\n"
        "    relu_kernel[(1,)](x, y, x.numel(), BLOCK=64)\n    return y\n",
        "retile the relu kernel",
        "apply pipelining to the relu kernel",
    ),
    program(
        "two independent loads",
        ADD + "def f(x, y):\n    out = torch.empty_like(x)\n"
        "    add_kernel[(1,)](x, y, out, x.numel(), BLOCK=64)\n    return out\n",
        "retile the add kernel",
        "reorder the add kernel",
        "apply pipelining to the add kernel",
    ),
    program(
        "a chain of reductions of one load",
        SOFTMAX + "def f(x):\n    y = torch.empty_like(x)\n"
        "    _softmax_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=1024)\n    return y\n",
        "retile the softmax kernel",
        "apply pipelining to the softmax kernel",
    ),
    program(
        "two kernels in a row",
        MATMUL + RELU + "def f(a, b):\n    M, K = a.shape\n    N = b.shape[1]\n"
        "    c = torch.empty((M, N), device=a.device)\n    d = torch.empty_like(c)\n"
        "    matmul_kernel[(4, 4)](a, b, c, M, N, K, BLOCK=32)\n"
        "    relu_kernel[(1,)](c, d, c.numel(), BLOCK=64)\n    return d\n",
        "retile the matmul kernel",
        "retile the relu kernel",
        "fuse the matmul kernel with the relu kernel",
        "reorder the matmul kernel",
        "apply pipelining to the matmul kernel",
        "apply pipelining to the relu kernel",
    ),
    program(
        "a kernel, then an operator",
        MATMUL + "def f(a, b):\n    c = a.new_empty((a.shape[0], b.shape[1]))\n"
        "    matmul_kernel[(4, 4)](a, b, c, 1, 2, 3, BLOCK=32)\n    return torch.relu(c)\n",
        "retile the matmul kernel",
        "fuse the matmul kernel with the relu",
        "reorder the matmul kernel",
        "apply pipelining to the matmul kernel",
    ),
    program(
        "kernels behind functions of the file",
        RELU + SOFTMAX + "def relu(x):\n    y = torch.empty_like(x)\n"
        "    relu_kernel[(1,)](x, y, 1, BLOCK=64)\n    return y\n"
        "def softmax(x):\n    y = torch.empty_like(x)\n"
        "    _softmax_kernel[(1,)](x, y, 1, BLOCK=64)\n    return y\n"
        "class ModelNew(nn.Module):\n    def forward(self, x):\n"
        "        return softmax(relu(x).view(-1, 8))\n",
        "retile the relu kernel",
        "retile the softmax kernel",
        "fuse the relu kernel with the softmax kernel",
        "apply pipelining to the relu kernel",
        "apply pipelining to the softmax kernel",
    ),
    program(
        "two kernels that do not feed each other",
        RELU + SOFTMAX + "def f(x, z):\n    y, w = torch.empty_like(x), torch.empty_like(z)\n"
        "    relu_kernel[(1,)](x, y, 1, BLOCK=64)\n"
        "    _softmax_kernel[(1,)](z, w, 1, BLOCK=64)\n    return y, w\n",
        "retile the relu kernel",
        "retile the softmax kernel",
        "apply pipelining to the relu kernel",
        "apply pipelining to the softmax kernel",
    ),
    program(
        "a kernel whose result is thrown away",
        RELU + "def f(x):\n    y = torch.empty_like(x)\n"
        "    relu_kernel[(1,)](x, y, 1, BLOCK=64)\n    return x.exp().sum()\n",
        "fuse the exp with the sum",
    ),
    program(
        "a kernel through an autograd function",
        RELU + "class Relu(torch.autograd.Function):\n    @staticmethod\n"
        "    def forward(ctx, x):\n        y = torch.empty_like(x)\n"
        "        relu_kernel[(1,)](x, y, 1, BLOCK=64)\n        return y\n"
        "class ModelNew(nn.Module):\n    def forward(self, x):\n        return Relu.apply(x) * 2\n",
        "retile the relu kernel",
        "fuse the relu kernel with the mul",
        "apply pipelining to the relu kernel",
    ),
    program(
        "one kernel in place, launched in a loop",
        RELU + "def f(x):\n    x = x.clone()\n    for _ in range(3):\n"
        "        relu_kernel[(1,)](x, x, 1, BLOCK=64)\n    return x\n",
        "retile the relu kernel",
        "apply pipelining to the relu kernel",
    ),
    program(
        "modules of torch",
        "class ModelNew(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.fc = nn.Linear(8, 8)\n        self.act = nn.GELU()\n"
        "    def forward(self, x):\n        return self.act(self.fc(x)).max(dim=1).values\n",
        "fuse the linear with the gelu",
        "fuse the gelu with the max",
        language="torch",
    ),
    program(
        "modules in a sequence",
        "class ModelNew(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU())\n"
        "    def forward(self, x):\n        return self.net(x)\n",
        "fuse the conv2d with the batchnorm2d",
        "fuse the batchnorm2d with the relu",
        language="torch",
    ),
    program(
        "one operator",
        "def f(x):\n    return torch.softmax(x, dim=-1)\n",
        language="torch",
    ),
    program(
        "equal operators are told apart by their variables",
        "def f(x):\n    a = torch.exp(x)\n    b = torch.exp(a)\n    return b\n",
        "fuse the exp into a with the exp into b",
        language="torch",
    ),
    program(
        "a diamond",
        "def f(x):\n    e = torch.exp(x - x.amax(-1, keepdim=True))\n"
        "    return e / e.sum(-1, keepdim=True)\n",
        "fuse the amax with the sub",
        "fuse the sub with the exp",
        "fuse the exp with the sum",
        "fuse the exp with the div",
        "fuse the sum with the div",
        language="torch",
    ),
    program(
        "views between operators",
        "def f(x, w):\n    y = torch.matmul(x, w.t()).reshape(4, -1).contiguous()\n"
        "    return F.relu(y[:, 1:])\n",
        "fuse the matmul with the relu",
        language="torch",
    ),
    program(
        "a branch",
        "def f(x, bias):\n    y = x @ x\n    if bias is not None:\n        y = y + bias\n"
        "    return torch.tanh(y)\n",
        "fuse the matmul with the add",
        "fuse the matmul with the tanh",
        "fuse the add with the tanh",
        language="torch",
    ),
    program(
        "one loop nest in C++",
        'extern "C" void scale(const float* x, float* y, long n) {\n'
        "  for (long i = 0; i < n; ++i) y[i] = 2.0f * x[i];\n}\n",
        "retile the scale loop",
        "apply pipelining to the scale loop",
        language="cpp",
    ),
    program(
        "two loop nests in C++",
        'extern "C" void rows(const float* x, float* y, float* s, long n, long m) {\n'
        "  for (long i = 0; i < n; ++i) {\n    for (long j = 0; j < m; ++j) s[i] += x[i * m + j];\n"
        "  }\n  for (long k = 0; k < n * m; ++k) { y[k] = x[k] / s[k / m]; }\n}\n",
        "retile the rows loop over i",
        "retile the rows loop over k",
        "fuse the rows loop over i with the rows loop over k",
        "reorder the rows loop over i",
        "apply pipelining to the rows loop over i",
        "apply pipelining to the rows loop over k",
        language="cpp",
    ),
    program(
        "two CUDA kernels",
        "__global__ void linear_kernel(const float* x, const float* w, float* y, int k) {\n"
        "  float t = 0; for (int j = 0; j < k; ++j) t += x[j] * w[j]; y[threadIdx.x] = t;\n}\n"
        "__global__ void relu_kernel(float* y) { y[threadIdx.x] = fmaxf(y[threadIdx.x], 0); }\n"
        "torch::Tensor forward(torch::Tensor x, torch::Tensor w) {\n"
        "  auto y = torch::empty_like(x);\n"
        "  linear_kernel<<<1, 32>>>(x.data_ptr<float>(), w.data_ptr<float>(), "
        "y.data_ptr<float>(), 8);\n"
        "  relu_kernel<<<1, 32>>>(y.data_ptr<float>());\n  return y;\n}\n",
        "retile the linear kernel",
        "retile the relu kernel",
        "fuse the linear kernel with the relu kernel",
        "reorder the linear kernel",
        "apply pipelining to the linear kernel",
        "apply pipelining to the relu kernel",
        language="cpp",
    ),
)
