"""Mean cross entropy of logits against class numbers, and its gradient.

The judge does not use scaled or heavy-tailed inputs here. A class may then have probability 1 to
machine precision. Its gradient `p - 1` cancels in float64 too, so the reference would be wrong.
"""

import torch
import torch.nn.functional as F

ENTRY = "cross_entropy"

CASES = [
    {"name": "tiny", "rows": 3, "classes": 5},
    {"name": "medium", "rows": 65, "classes": 1001},
    {"name": "large", "rows": 256, "classes": 8000},
]

VARY = {
    "sizes": {"rows": (2, 300), "classes": (2, 5000)},
    "contents": ["nominal", "sign", "offset", "small_integers"],
}

GRADS = ["logits"]


def inputs(case, generator):
    rows, classes = case["rows"], case["classes"]
    logits = torch.randn(rows, classes, generator=generator)
    return logits, torch.randint(classes, (rows,), generator=generator)


def reference(logits, targets):
    return F.cross_entropy(logits, targets)


def BYTES(case):
    return 8 * case["rows"] * (case["classes"] + 1) + 8


def FLOPS(case):
    return 6 * case["rows"] * case["classes"]
