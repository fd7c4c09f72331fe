"""The negative of a tensor."""

import torch

ENTRY = "negate"

CASES = [
    {"name": "tiny", "rows": 3, "cols": 5},
    {"name": "large", "rows": 1024, "cols": 2048},
]

VARY = {"sizes": {"rows": (1, 300), "cols": (1, 3000)}}


def inputs(case, generator):
    return (torch.randn(case["rows"], case["cols"], generator=generator),)


def reference(x):
    return -x
