"""Softmax over a tensor whose call takes long enough to be disturbed at leisure."""

import torch

ENTRY = "softmax"

CASES = [{"name": "one", "rows": 8192}]


def inputs(case, generator):
    return (torch.randn(case["rows"], 1024, generator=generator),)


def reference(x):
    return torch.softmax(x, -1)
