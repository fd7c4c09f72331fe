"""A copy of a matrix in memory of its own."""

import torch

ENTRY = "duplicate"
CASES = [{"name": "main", "rows": 512, "cols": 2048}]


def inputs(case, generator):
    return (torch.randn(case["rows"], case["cols"], generator=generator),)


def reference(x):
    return x.clone()
