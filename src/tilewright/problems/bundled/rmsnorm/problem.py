"""Root-mean-square normalisation of each row, times a weight for each column."""

import torch

ENTRY = "rmsnorm"

CASES = [
    {"name": "tiny", "rows": 3, "cols": 5},
    {"name": "medium", "rows": 129, "cols": 1000},
    {"name": "large", "rows": 512, "cols": 4096},
]

VARY = {"sizes": {"rows": (1, 300), "cols": (1, 5000)}}

EPSILON = 1e-6


def inputs(case, generator):
    x = torch.randn(case["rows"], case["cols"], generator=generator)
    weight = 0.5 + torch.rand(case["cols"], generator=generator)
    return x, weight


def reference(x, weight):
    mean_square = x.pow(2).mean(dim=-1, keepdim=True)
    return x * torch.rsqrt(mean_square + EPSILON) * weight


def BYTES(case):
    return 4 * (2 * case["rows"] + 1) * case["cols"]


def FLOPS(case):
    return 4 * case["rows"] * case["cols"]
