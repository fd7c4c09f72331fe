"""A matrix product, a bias for each column, and the exact (erf) GELU."""

import torch
import torch.nn.functional as F

ENTRY = "matmul_bias_gelu"

CASES = [
    {"name": "tiny", "m": 3, "k": 5, "n": 7},
    {"name": "medium", "m": 65, "k": 129, "n": 100},
    {"name": "large", "m": 256, "k": 512, "n": 512},
]

VARY = {"sizes": {"m": (1, 200), "k": (1, 600), "n": (5, 300)}}


def inputs(case, generator):
    m, k, n = case["m"], case["k"], case["n"]
    x = torch.randn(m, k, generator=generator)
    weight = torch.randn(k, n, generator=generator) / k**0.5
    bias = torch.randn(n, generator=generator)
    return x, weight, bias


def reference(x, weight, bias):
    return F.gelu(x @ weight + bias)


def BYTES(case):
    m, k, n = case["m"], case["k"], case["n"]
    return 4 * (m * k + k * n + n + m * n)


def FLOPS(case):
    return 2 * case["m"] * case["k"] * case["n"]
