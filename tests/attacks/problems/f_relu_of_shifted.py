"""A rectified negative square with a shift: positive on a part of the inputs."""

import torch

ENTRY = "f_relu_of_shifted"

CASES = [
    {"name": "tiny", "rows": 3, "cols": 5},
    {"name": "large", "rows": 256, "cols": 4096},
]

VARY = {"sizes": {"rows": (1, 200), "cols": (2, 3000)}}


def inputs(case, generator):
    return (torch.randn(case["rows"], case["cols"], generator=generator),)


def reference(x):
    return torch.relu(0.25 - (x.sin() * x).square())
