"""A product and an exponential of each row's size, which overflows where inputs grow."""

import torch

ENTRY = "k_large_exponent"

CASES = [
    {"name": "small", "rows": 9, "inner": 128, "cols": 33},
    {"name": "large", "rows": 256, "inner": 1024, "cols": 768},
]


def inputs(case, generator):
    x = torch.randn(case["rows"], case["inner"], generator=generator)
    w = torch.randn(case["inner"], case["cols"], generator=generator)
    return x, w / case["inner"] ** 0.5


def reference(x, w):
    return torch.exp(40 * x.square().mean(dim=-1, keepdim=True)) + x @ w
