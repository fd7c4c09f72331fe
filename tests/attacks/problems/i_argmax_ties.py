"""The place of the largest value of each row of small integers."""

import torch

ENTRY = "i_argmax_ties"

CASES = [
    {"name": "small", "rows": 7, "cols": 33},
    {"name": "large", "rows": 512, "cols": 2048},
]


def inputs(case, generator):
    rows, cols = case["rows"], case["cols"]
    x = torch.randint(0, 20, (rows, cols), generator=generator)
    return (x.float(),)


def reference(x):
    return torch.argmax(x, dim=-1)
