"""Mean cross entropy of logits against class numbers, and its gradient.

Not scaled or heavy-tailed: where a class has probability 1 to machine precision, its gradient
`p - 1` cancels in float64 as well, and the oracle itself would be wrong.
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
