"""The first half of the rows, as a tensor of its own."""

import torch

ENTRY = "upper_half"
CASES = [{"name": "main", "rows": 1024, "cols": 2048}]


def inputs(case, generator):
    return (torch.randn(case["rows"], case["cols"], generator=generator),)


def reference(x):
    return x[: len(x) // 2].clone()
