"""A copy of the transposed input that keeps the input's order in memory."""

import torch

CASES = [{"name": "tall", "rows": 4096, "cols": 256}, {"name": "wide", "rows": 256, "cols": 2048}]
ENTRY = "transposed_copy"


def inputs(case, generator):
    return (torch.randn(case["rows"], case["cols"], generator=generator),)


def reference(x):
    return x.t().clone(memory_format=torch.preserve_format)
