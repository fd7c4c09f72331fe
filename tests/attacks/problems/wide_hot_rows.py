"""One-hot rows of class numbers, each scaled by a weight."""
import torch
ENTRY = "few_hot_rows"
CASES = [{"name": "main", "count": 60, "classes": 16384}]
def inputs(case, generator):
    labels = torch.randint(0, case["classes"], (case["count"],), generator=generator)
    return labels, torch.randn(case["count"], generator=generator)
def reference(labels, weights):
    hot = torch.zeros(len(labels), 16384, device=labels.device)
    return hot.scatter_(1, labels[:, None], weights[:, None])
