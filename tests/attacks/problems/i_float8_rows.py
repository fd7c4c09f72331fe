"""Rows in float8 with a scale for each row."""

import torch

ENTRY = "i_float8_rows"

CASES = [
    {"name": "small", "rows": 7, "cols": 33},
    {"name": "large", "rows": 256, "cols": 2048},
]

VARY = {"contents": ["nominal", "scale", "sign", "offset"]}


def inputs(case, generator):
    return (torch.randn(case["rows"], case["cols"], generator=generator),)


def reference(x):
    scale = x.abs().amax(dim=-1, keepdim=True).float() / 448
    return (x.float() / scale).to(torch.float8_e4m3fn), scale
