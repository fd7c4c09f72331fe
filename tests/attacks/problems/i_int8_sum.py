"""A sum of int8 values in int32, and their bytes as uint8."""

import torch

ENTRY = "i_int8_sum"

CASES = [
    {"name": "small", "rows": 7, "cols": 33},
    {"name": "large", "rows": 512, "cols": 2048},
]


def inputs(case, generator):
    rows, cols = case["rows"], case["cols"]
    x = torch.randint(-128, 128, (rows, cols), generator=generator, dtype=torch.int8)
    return (x,)


def reference(x):
    return x.sum(dim=-1, dtype=torch.int32), x.view(torch.uint8).clone()
