"""A scaled and transposed matrix without its last row: no reference output is dense."""

import torch

CASES = [{"name": "tall", "rows": 4096, "cols": 257}, {"name": "wide", "rows": 256, "cols": 2049}]
ENTRY = "transposed_part"


def inputs(case, generator):
    return (torch.randn(case["rows"], case["cols"], generator=generator),)


def reference(x):
    return (x * 3).t()[:-1]
