"""Two equal tables, the halves of one tensor, as rotary embeddings make them."""

import torch

ENTRY = "halves_of_one"
CASES = [{"name": "main", "rows": 512, "cols": 2048}]


def inputs(case, generator):
    return (torch.randn(case["rows"], case["cols"], generator=generator),)


def reference(x):
    first, second = torch.cos(x).repeat(2, 1).chunk(2)
    return first, second
