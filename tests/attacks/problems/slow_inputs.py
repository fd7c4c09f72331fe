"""Values of a matrix in order, whose inputs take most of a second to make."""

import torch

ENTRY = "slow_inputs"
CASES = [{"name": "main", "n": 160}]
VARY = {"contents": ["scale"]}


def inputs(case, generator):
    x = torch.randn(case["n"], case["n"], generator=generator)
    for _ in range(60):
        x = torch.linalg.qr(x)[0] @ torch.linalg.svd(x)[0]
    return (x,)


def reference(x):
    return x.flatten().sort().values
