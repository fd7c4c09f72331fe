"""Whether a row holds a positive number: one for nearly every row of many numbers."""

import torch

ENTRY = "any_positive"

CASES = [
    {"name": "tiny", "rows": 40, "cols": 2},
    {"name": "wide", "rows": 128, "cols": 4096},
]

VARY = {"sizes": {"rows": (1, 300), "cols": (1, 4096)}}


def inputs(case, generator):
    return (torch.randn(case["rows"], case["cols"], generator=generator),)


def reference(x):
    return (x > 0).any(dim=-1).to(x.dtype)
