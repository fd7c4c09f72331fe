"""Activations times int8 weights that carry one scale for each output row."""

import torch

ENTRY = "quantised_matmul"

CASES = [
    {"name": "tiny", "m": 3, "k": 5, "n": 7},
    {"name": "medium", "m": 17, "k": 300, "n": 129},
    {"name": "large", "m": 64, "k": 1024, "n": 1024},
]

VARY = {"sizes": {"m": (1, 100), "k": (1, 1000), "n": (1, 500)}}


def inputs(case, generator):
    m, k, n = case["m"], case["k"], case["n"]
    x = torch.randn(m, k, generator=generator)
    weight = torch.randint(-127, 128, (n, k), generator=generator, dtype=torch.int8)
    scale = (0.5 + torch.rand(n, generator=generator)) / (64 * k**0.5)
    return x, weight, scale


def reference(x, weight, scale):
    dequantised = weight.to(x.dtype) * scale[:, None]
    return x @ dequantised.T


def BYTES(case):
    m, k, n = case["m"], case["k"], case["n"]
    return 4 * m * k + n * k + 4 * n + 4 * m * n


def FLOPS(case):
    return 2 * case["m"] * case["k"] * case["n"]
