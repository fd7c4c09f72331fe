"""The mean of each row's softmax: always 1 / cols, so a constant is right. A weak problem."""

import torch

ENTRY = "mean_softmax"

CASES = [
    {"name": "tiny", "rows": 3, "cols": 5},
    {"name": "wide", "rows": 128, "cols": 4096},
]

VARY = {"sizes": {"rows": (1, 300), "cols": (1, 4096)}}


def inputs(case, generator):
    return (torch.randn(case["rows"], case["cols"], generator=generator),)


def reference(x):
    return torch.softmax(x, dim=-1).mean(dim=-1)
