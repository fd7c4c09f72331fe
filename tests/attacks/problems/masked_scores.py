"""Scores of a causal attention: products of rows, and -inf where a row may not look."""

import torch

ENTRY = "masked_scores"
CASES = [{"name": "main", "rows": 768, "cols": 256}]


def inputs(case, generator):
    shape = (case["rows"], case["cols"])
    return torch.randn(shape, generator=generator), torch.randn(shape, generator=generator)


def reference(q, k):
    hidden = torch.ones(q.shape[0], k.shape[0], dtype=torch.bool, device=q.device).triu(1)
    return (q @ k.T).masked_fill(hidden, float("-inf"))
