"""Cumulative sum along the last dimension."""

import torch

ENTRY = "cumsum"

CASES = [
    {"name": "tiny", "rows": 3, "cols": 5},
    {"name": "medium", "rows": 129, "cols": 1000},
    {"name": "large", "rows": 384, "cols": 4096},
]

VARY = {"sizes": {"rows": (1, 300), "cols": (1, 4096)}}


def inputs(case, generator):
    return (torch.randn(case["rows"], case["cols"], generator=generator),)


def reference(x):
    return torch.cumsum(x, dim=-1)


def BYTES(case):
    return 2 * 4 * case["rows"] * case["cols"]


def FLOPS(case):
    return case["rows"] * case["cols"]
