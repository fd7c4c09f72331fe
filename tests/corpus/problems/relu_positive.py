"""ReLU of inputs that are never negative, so that its nominal output equals its input."""

import torch

ENTRY = "relu_positive"

CASES = [
    {"name": "tiny", "rows": 3, "cols": 5},
    {"name": "large", "rows": 512, "cols": 2048},
]

VARY = {"sizes": {"rows": (1, 300), "cols": (1, 3000)}}


def inputs(case, generator):
    return (torch.rand(case["rows"], case["cols"], generator=generator),)


def reference(x):
    return torch.relu(x)
