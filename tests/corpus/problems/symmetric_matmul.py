"""A symmetric matrix times a matrix: the symmetry belongs to the problem."""

import torch

ENTRY = "symmetric_matmul"

CASES = [
    {"name": "tiny", "n": 5, "m": 3},
    {"name": "large", "n": 300, "m": 128},
]

VARY = {"sizes": {"n": (2, 300), "m": (1, 200)}}


def inputs(case, generator):
    a = torch.randn(case["n"], case["n"], generator=generator)
    return a + a.T, torch.randn(case["n"], case["m"], generator=generator)


def reference(a, b):
    return a @ b
