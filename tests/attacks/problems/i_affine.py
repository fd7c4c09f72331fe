"""An affine map of each element."""

import torch

ENTRY = "i_affine"

CASES = [
    {"name": "small", "rows": 7, "cols": 33},
    {"name": "large", "rows": 512, "cols": 2048},
]


def inputs(case, generator):
    rows, cols = case["rows"], case["cols"]
    return (torch.randn(rows, cols, generator=generator),)


def reference(x):
    return 3 * x + 1
