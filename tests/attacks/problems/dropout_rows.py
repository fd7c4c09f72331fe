"""Rows scaled by their norm, of which half of the elements are dropped."""

import torch

ENTRY = "dropped"
CASES = [{"name": "main", "rows": 512, "cols": 1024}]


def inputs(case, generator):
    return (torch.randn(case["rows"], case["cols"], generator=generator),)


def reference(x):
    return torch.nn.functional.dropout(x / x.norm(dim=-1, keepdim=True), 0.5)
