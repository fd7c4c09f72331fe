"""Two tensors are scaled and added: a small problem whose candidates misbehave elsewhere."""

import torch

ENTRY = "h_scaled_sum"

CASES = [
    {"name": "small", "rows": 7, "cols": 33},
    {"name": "large", "rows": 256, "cols": 1024},
]

VARY = {"sizes": {"rows": (1, 100), "cols": (1, 1000)}}


def inputs(case, generator):
    shape = (case["rows"], case["cols"])
    return torch.randn(shape, generator=generator), torch.randn(shape, generator=generator)


def reference(x, y):
    return 2 * x + y
