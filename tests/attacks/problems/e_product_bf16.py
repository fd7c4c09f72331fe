"""A matrix product of bfloat16 factors."""

import torch

ENTRY = "e_product_bf16"
PRECISION = "bf16"

CASES = [
    {"name": "small", "m": 9, "k": 65, "n": 17},
    {"name": "large", "m": 128, "k": 1024, "n": 192},
]


def inputs(case, generator):
    m, k, n = case["m"], case["k"], case["n"]
    x = torch.randn(m, k, generator=generator)
    w = torch.randn(k, n, generator=generator) / k**0.5
    return x.bfloat16(), w.bfloat16()


def reference(x, w):
    return x @ w
