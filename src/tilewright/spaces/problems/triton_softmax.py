"""Softmax over the rows of a matrix, for a Triton candidate on a GPU."""

import torch

ENTRY = "softmax"

CASES = [{"name": "rows", "rows": 4096, "cols": 5000}]

VARY = {"sizes": {"rows": (1, 300), "cols": (1, 6000)}}


def inputs(case, generator):
    return (torch.randn(case["rows"], case["cols"], generator=generator),)


def reference(x):
    return torch.softmax(x, dim=-1)


def BYTES(case):
    return 2 * 4 * case["rows"] * case["cols"]


def FLOPS(case):
    return 5 * case["rows"] * case["cols"]
