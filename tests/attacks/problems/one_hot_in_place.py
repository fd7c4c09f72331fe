"""One-hot rows, for a caller who lets the weights be overwritten."""

import torch

ENTRY = "one_hot_in_place"
CASES = [{"name": "main", "count": 2048, "classes": 1024}]
DONATES = ["weights"]


def inputs(case, generator):
    labels = torch.randint(0, case["classes"], (case["count"],), generator=generator)
    return labels, torch.randn(case["count"], generator=generator)


def reference(labels, weights):
    hot = torch.zeros(len(labels), 1024, device=labels.device)
    return hot.scatter_(1, labels[:, None], weights[:, None])
