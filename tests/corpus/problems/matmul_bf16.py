"""A matrix product of bfloat16 tensors: here low precision is the problem's own."""

import torch

ENTRY = "matmul_bf16"
PRECISION = "bf16"

CASES = [
    {"name": "tiny", "m": 3, "k": 5, "n": 7},
    {"name": "medium", "m": 65, "k": 129, "n": 100},
    {"name": "large", "m": 256, "k": 512, "n": 512},
]

VARY = {"sizes": {"m": (1, 200), "k": (1, 600), "n": (1, 300)}}


def inputs(case, generator):
    m, k, n = case["m"], case["k"], case["n"]
    x = torch.randn(m, k, generator=generator)
    weight = torch.randn(k, n, generator=generator) / k**0.5
    return x.bfloat16(), weight.bfloat16()


def reference(x, weight):
    return x @ weight


def BYTES(case):
    m, k, n = case["m"], case["k"], case["n"]
    return 2 * (m * k + k * n + m * n)
