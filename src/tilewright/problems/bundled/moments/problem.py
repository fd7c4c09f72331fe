"""Mean, variance and maximum of each row: three outputs from one pass over the input."""

import torch

ENTRY = "moments"

CASES = [
    {"name": "tiny", "rows": 3, "cols": 5},
    {"name": "medium", "rows": 65, "cols": 1000},
    {"name": "large", "rows": 128, "cols": 4096},
]

VARY = {"sizes": {"rows": (1, 300), "cols": (1, 5000)}}


def inputs(case, generator):
    return (torch.randn(case["rows"], case["cols"], generator=generator),)


def reference(x):
    variance, mean = torch.var_mean(x, dim=-1, correction=0)
    return mean, variance, x.amax(dim=-1)


def BYTES(case):
    return 4 * case["rows"] * (case["cols"] + 3)


def FLOPS(case):
    return 5 * case["rows"] * case["cols"]
