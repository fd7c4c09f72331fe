"""A scaled matrix, and the same once more for another owner."""

import torch

ENTRY = "two_copies"
CASES = [{"name": "main", "rows": 512, "cols": 2048}]


def inputs(case, generator):
    return (torch.randn(case["rows"], case["cols"], generator=generator),)


def reference(x):
    y = x * 2
    return y, y.clone()
