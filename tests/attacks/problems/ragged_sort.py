"""Sorted values of a vector whose length the generator chooses."""

import torch

ENTRY = "ragged_sort"
CASES = [{"name": "main", "most": 60000}]
VARY = {"contents": ["scale"]}


def inputs(case, generator):
    size = case["most"] - int(torch.randint(0, 999, (1,), generator=generator))
    return (torch.randn(size, generator=generator),)


def reference(x):
    return x.sort().values
