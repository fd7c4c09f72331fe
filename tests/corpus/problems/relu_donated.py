"""ReLU of the sum of two tensors, the first of which the candidate may overwrite."""

import torch

ENTRY = "relu_donated"

CASES = [
    {"name": "tiny", "rows": 3, "cols": 5},
    {"name": "large", "rows": 512, "cols": 2048},
]

VARY = {"sizes": {"rows": (1, 300), "cols": (1, 3000)}}

DONATES = ["x"]


def inputs(case, generator):
    shape = (case["rows"], case["cols"])
    return torch.randn(shape, generator=generator), torch.randn(shape, generator=generator)


def reference(x, y):
    return torch.relu(x + y)
