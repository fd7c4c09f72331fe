"""Softmax under a mask. A row without any allowed column is NaN, by definition of this problem."""

import torch

ENTRY = "masked_softmax"

CASES = [
    {"name": "tiny", "rows": 6, "cols": 5},
    {"name": "large", "rows": 256, "cols": 2048},
]

VARY = {"sizes": {"rows": (3, 300), "cols": (2, 3000)}}


def inputs(case, generator):
    rows, cols = case["rows"], case["cols"]
    x = torch.randn(rows, cols, generator=generator)
    mask = torch.rand(rows, cols, generator=generator) < 0.7
    mask[0], mask[1::3] = True, False
    return x, mask


def reference(x, mask):
    return torch.softmax(x.masked_fill(~mask, float("-inf")), dim=-1)
