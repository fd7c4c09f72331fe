"""The first of two matrices as it is, and a copy of the second."""

import torch

ENTRY = "returns_first"
CASES = [{"name": "main", "rows": 512, "cols": 2048}]


def inputs(case, generator):
    shape = case["rows"], case["cols"]
    return torch.randn(shape, generator=generator), torch.randn(shape, generator=generator)


def reference(first, second):
    return first, second.clone()
