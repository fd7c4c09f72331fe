"""The outer product of two vectors, a large output of small inputs."""

import torch

ENTRY = "outer_square"
CASES = [{"name": "main", "n": 3072}]


def inputs(case, generator):
    n = case["n"]
    return torch.randn(n, generator=generator), torch.randn(n, generator=generator)


def reference(a, b):
    return torch.outer(a, b)
