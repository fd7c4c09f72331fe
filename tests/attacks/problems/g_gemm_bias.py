"""A matrix product with a bias in float32."""

import torch

ENTRY = "g_gemm_bias"

CASES = [
    {"name": "small", "m": 33, "k": 65, "n": 17},
    {"name": "large", "m": 256, "k": 512, "n": 256},
]

VARY = {"sizes": {"m": (1, 100), "k": (1, 300), "n": (1, 100)}}


def inputs(case, generator):
    m, k, n = case["m"], case["k"], case["n"]
    x = torch.randn(m, k, generator=generator)
    w = torch.randn(k, n, generator=generator) / k**0.5
    return x, w, torch.randn(n, generator=generator)


def reference(x, w, b):
    return x @ w + b
