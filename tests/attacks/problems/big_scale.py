"""A large matrix times a number for each row."""

import torch

ENTRY = "big_scale"
CASES = [{"name": "main", "rows": 4096, "cols": 2560}]
VARY = {"contents": ["sign", "scale"]}


def inputs(case, generator):
    x = torch.randn(case["rows"], case["cols"], generator=generator)
    return x, torch.rand(case["rows"], 1, generator=generator)


def reference(x, w):
    return x * w
