"""The sum of squares of each row of a softmax, which depends on the input."""

import torch

ENTRY = "f_sum_of_squares_softmax"

CASES = [
    {"name": "tiny", "rows": 3, "cols": 5},
    {"name": "large", "rows": 256, "cols": 4096},
]

VARY = {"sizes": {"rows": (1, 200), "cols": (2, 3000)}}


def inputs(case, generator):
    return (torch.randn(case["rows"], case["cols"], generator=generator),)


def reference(x):
    return torch.softmax(x, dim=-1).square().sum(dim=-1)
