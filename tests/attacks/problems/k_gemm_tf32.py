"""A matrix product in float32, where TF32 is allowed."""

import torch

ENTRY = "k_gemm_tf32"

CASES = [
    {"name": "small", "rows": 33, "cols": 65},
    {"name": "large", "rows": 512, "cols": 768},
]


def inputs(case, generator):
    rows, cols = case["rows"], case["cols"]
    x = torch.randn(rows, cols, generator=generator)
    return x, torch.randn(cols, rows, generator=generator) / cols**0.5


def reference(x, w):
    return x @ w
