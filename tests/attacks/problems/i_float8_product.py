"""A product of a float8 matrix with a bfloat16 one."""

import torch

ENTRY = "i_float8_product"

CASES = [
    {"name": "small", "rows": 7, "cols": 33},
    {"name": "large", "rows": 128, "cols": 512},
]


def inputs(case, generator):
    rows, cols = case["rows"], case["cols"]
    x = torch.randn(rows, cols, generator=generator)
    w = torch.randn(cols, rows, generator=generator) / cols**0.5
    return x.to(torch.float8_e4m3fn), w.bfloat16()


def reference(x, w):
    return x.bfloat16() @ w
