"""A half-precision linear layer with GELU, for a Triton candidate on a GPU."""

import torch
import torch.nn.functional as F

ENTRY = "linear_gelu"

CASES = [{"name": "layer", "m": 2048, "k": 2048, "n": 4096}]

VARY = {"sizes": {"m": (1, 200), "k": (1, 600), "n": (5, 300)}}


def inputs(case, generator):
    m, k, n = case["m"], case["k"], case["n"]
    x = torch.randn(m, k, generator=generator)
    weight = torch.randn(k, n, generator=generator) / k**0.5
    bias = torch.randn(n, generator=generator)
    return x.half(), weight.half(), bias.half()


def reference(x, weight, bias):
    return F.gelu(x @ weight + bias)


def BYTES(case):
    m, k, n = case["m"], case["k"], case["n"]
    return 2 * (m * k + k * n + n + m * n)


def FLOPS(case):
    return 2 * case["m"] * case["k"] * case["n"]
