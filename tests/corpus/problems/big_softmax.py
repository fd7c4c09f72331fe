"""Softmax over the last dimension, at a size that fills a GPU."""

import torch

ENTRY = "big_softmax"

CASES = [
    {"name": "tiny", "rows": 3, "cols": 5},
    {"name": "large", "rows": 8192, "cols": 4096},
]

VARY = {"sizes": {"rows": (1, 300), "cols": (1, 5000)}}


def inputs(case, generator):
    return (torch.randn(case["rows"], case["cols"], generator=generator),)


def reference(x):
    return torch.softmax(x, dim=-1)
