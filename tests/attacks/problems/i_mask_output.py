"""A comparison whose output is a mask, and the count of true elements."""

import torch

ENTRY = "i_mask_output"

CASES = [
    {"name": "small", "rows": 7, "cols": 33},
    {"name": "large", "rows": 512, "cols": 2048},
]


def inputs(case, generator):
    rows, cols = case["rows"], case["cols"]
    return (torch.randn(rows, cols, generator=generator),)


def reference(x):
    mask = x > 0.5
    return mask, mask.sum(dim=-1)
