"""A transpose that is written out: the output has memory of its own."""

import torch

ENTRY = "transpose_copy"

CASES = [
    {"name": "tiny", "rows": 3, "cols": 5},
    {"name": "large", "rows": 1024, "cols": 1000},
]

VARY = {"sizes": {"rows": (2, 300), "cols": (2, 1000)}}


def inputs(case, generator):
    return (torch.randn(case["rows"], case["cols"], generator=generator),)


def reference(x):
    return x.t().contiguous()
