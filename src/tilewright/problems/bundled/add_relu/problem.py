"""Two tensors are added and the negative sums set to zero: the smallest problem of the set."""

import torch

ENTRY = "add_relu"

CASES = [
    {"name": "tiny", "rows": 3, "cols": 5},
    {"name": "medium", "rows": 129, "cols": 1000},
    {"name": "large", "rows": 640, "cols": 4096},
]

VARY = {"sizes": {"rows": (1, 300), "cols": (1, 3000)}}


def inputs(case, generator):
    shape = (case["rows"], case["cols"])
    return torch.randn(shape, generator=generator), torch.randn(shape, generator=generator)


def reference(x, y):
    return torch.relu(x + y)


def BYTES(case):
    return 3 * 4 * case["rows"] * case["cols"]


def FLOPS(case):
    return 2 * case["rows"] * case["cols"]
