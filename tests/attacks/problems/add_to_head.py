"""A matrix to whose first rows a vector is added."""

import torch

ENTRY = "add_to_head"
CASES = [{"name": "main", "rows": 2048, "cols": 1024, "head": 8}]


def inputs(case, generator):
    x = torch.randn(case["rows"], case["cols"], generator=generator)
    return x, torch.randn(case["head"], case["cols"], generator=generator)


def reference(x, head):
    return torch.cat([x[: len(head)] + head, x[len(head) :]])
