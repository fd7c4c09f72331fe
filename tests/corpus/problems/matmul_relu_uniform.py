"""ReLU of a product of matrices drawn from [0, 1): nominally there is nothing to cut off."""

import torch

ENTRY = "matmul_relu_uniform"

CASES = [
    {"name": "tiny", "m": 3, "k": 5, "n": 7},
    {"name": "large", "m": 128, "k": 256, "n": 256},
]

VARY = {"sizes": {"m": (1, 200), "k": (1, 300), "n": (1, 300)}}


def inputs(case, generator):
    m, k, n = case["m"], case["k"], case["n"]
    return torch.rand(m, k, generator=generator), torch.rand(k, n, generator=generator)


def reference(x, weight):
    return torch.relu(x @ weight)


def BYTES(case):
    m, k, n = case["m"], case["k"], case["n"]
    return 4 * (m * k + k * n + m * n)
