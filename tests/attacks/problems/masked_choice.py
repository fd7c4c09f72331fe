"""The largest allowed element of each row: its index, and a mask of what is allowed."""

import torch

ENTRY = "masked_choice"
CASES = [{"name": "main", "rows": 512, "cols": 2048}]


def inputs(case, generator):
    shape = case["rows"], case["cols"]
    scores = torch.randn(shape, generator=generator)
    return scores, torch.rand(shape, generator=generator) < 0.5


def reference(scores, allowed):
    return scores.masked_fill(~allowed, float("-inf")).argmax(-1)
