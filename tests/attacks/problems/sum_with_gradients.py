"""A sum with the gradients of both summands, which are the gradient of the output itself."""

import torch

ENTRY = "sum_with_gradients"
CASES = [{"name": "main", "rows": 256, "cols": 512}]
GRADS = ["x", "y"]


def inputs(case, generator):
    shape = case["rows"], case["cols"]
    return torch.randn(shape, generator=generator), torch.randn(shape, generator=generator)


def reference(x, y):
    return x + y
