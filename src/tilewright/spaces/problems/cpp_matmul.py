"""A matrix product, a bias for each column, and ReLU, for a C++ candidate on a CPU."""

import torch

ENTRY = "matmul_bias_relu"

CASES = [{"name": "layer", "m": 96, "k": 256, "n": 512}]

VARY = {"sizes": {"m": (1, 100), "k": (1, 300), "n": (1, 300)}}


def inputs(case, generator):
    m, k, n = case["m"], case["k"], case["n"]
    x = torch.randn(m, k, generator=generator)
    weight = torch.randn(k, n, generator=generator) / k**0.5
    bias = torch.randn(n, generator=generator)
    return x, weight, bias


def reference(x, weight, bias):
    return torch.relu(x @ weight + bias)


def BYTES(case):
    m, k, n = case["m"], case["k"], case["n"]
    return 4 * (m * k + k * n + n + m * n)


def FLOPS(case):
    return 2 * case["m"] * case["k"] * case["n"]
