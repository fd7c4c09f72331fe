"""The eight largest of each row of small integers, where values tie."""

import torch

ENTRY = "i_topk_ties"

CASES = [
    {"name": "small", "rows": 7, "cols": 33},
    {"name": "large", "rows": 256, "cols": 2048},
]


def inputs(case, generator):
    rows, cols = case["rows"], case["cols"]
    x = torch.randint(0, 50, (rows, cols), generator=generator)
    return (x.float(),)


def reference(x):
    values, places = torch.topk(x, 8, dim=-1)
    return values, places
