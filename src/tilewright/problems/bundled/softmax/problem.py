"""Softmax over the last dimension."""

import torch

ENTRY = "softmax"

CASES = [
    {"name": "tiny", "rows": 3, "cols": 5},
    {"name": "medium", "rows": 129, "cols": 1000},
    {"name": "large", "rows": 256, "cols": 8192},
]

VARY = {"sizes": {"rows": (1, 300), "cols": (1, 5000)}}


def inputs(case, generator):
    return (torch.randn(case["rows"], case["cols"], generator=generator),)


def reference(x):
    return torch.softmax(x, dim=-1)


def BYTES(case):
    return 2 * 4 * case["rows"] * case["cols"]


def FLOPS(case):
    return 5 * case["rows"] * case["cols"]
