"""One-hot rows in memory of the caller, which the reference clears first."""

import torch

ENTRY = "one_hot_into"
CASES = [{"name": "main", "count": 2048, "classes": 1024}]


def inputs(case, generator):
    labels = torch.randint(0, case["classes"], (case["count"],), generator=generator)
    weights = torch.randn(case["count"], generator=generator)
    return labels, weights, torch.zeros(case["count"], case["classes"])


def reference(labels, weights, output):
    output.zero_()
    output.scatter_(1, labels[:, None], weights[:, None])
