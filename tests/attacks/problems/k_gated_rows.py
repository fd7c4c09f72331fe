"""Rows of a product that are scaled by their own size."""

import torch

ENTRY = "k_gated_rows"

CASES = [
    {"name": "small", "rows": 7, "cols": 33},
    {"name": "large", "rows": 384, "cols": 512},
]


def inputs(case, generator):
    rows, cols = case["rows"], case["cols"]
    x = torch.randn(rows, cols, generator=generator)
    return x, torch.randn(cols, cols, generator=generator) / cols**0.5


def reference(x, w):
    return torch.exp(-((x @ w).square())) * x.abs().amax(dim=-1, keepdim=True)
