"""The place of the largest of eight sums of each row."""

import torch

ENTRY = "f_group_argmax"

CASES = [
    {"name": "small", "rows": 7, "cols": 64},
    {"name": "large", "rows": 256, "cols": 4096},
]

VARY = {"sizes": {"rows": (1, 200), "cols": (64, 3000)}}


def inputs(case, generator):
    return (torch.randn(case["rows"], case["cols"], generator=generator),)


def reference(x):
    parts = x.tensor_split(8, dim=-1)
    return torch.stack([part.exp().sum(dim=-1) for part in parts], dim=-1).argmax(dim=-1)
