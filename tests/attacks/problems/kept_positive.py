"""ReLU of values that are positive by the problem's own inputs."""

import torch

ENTRY = "kept_positive"
CASES = [{"name": "main", "rows": 512, "cols": 2048}]
VARY = {"contents": ["scale", "offset", "heavy_tail"]}


def inputs(case, generator):
    return (torch.rand(case["rows"], case["cols"], generator=generator) + 0.1,)


def reference(x):
    return torch.relu(x)
