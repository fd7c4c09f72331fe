"""The k largest values of each row, in descending order, and where they stand.

The values of a row are distinct, and only contents that keep them so may be drawn.
"""

import torch

ENTRY = "topk"

CASES = [
    {"name": "tiny", "rows": 3, "cols": 9, "k": 2},
    {"name": "medium", "rows": 65, "cols": 1000, "k": 5},
    {"name": "large", "rows": 256, "cols": 4096, "k": 8},
]

VARY = {
    "sizes": {"rows": (1, 300), "cols": (8, 4000), "k": (1, 8)},
    "contents": ["nominal", "scale", "sign", "offset"],
}


def inputs(case, generator):
    rows, cols = case["rows"], case["cols"]
    order = torch.rand(rows, cols, generator=generator).argsort(dim=-1)
    spread = 1 + torch.rand(rows, 1, generator=generator)
    centre = torch.rand(rows, 1, generator=generator) - 0.5
    x = (order / cols - 0.5) * (4 * spread) + centre  # steps of at least 4 / cols
    return x, case["k"]


def reference(x, k):
    values, indices = torch.topk(x, k, dim=-1)
    return values, indices


def BYTES(case):
    return case["rows"] * (4 * case["cols"] + 12 * case["k"])


def FLOPS(case):
    return case["rows"] * case["cols"]
