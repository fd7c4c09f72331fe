"""Sums of rows in which large values cancel: right only with a compensated or wider sum."""

import torch

ENTRY = "compensated_sum"

CASES = [
    {"name": "tiny", "rows": 3, "pairs": 5},
    {"name": "medium", "rows": 65, "pairs": 500},
    {"name": "large", "rows": 256, "pairs": 4000},
]

VARY = {
    "sizes": {"rows": (1, 200), "pairs": (40, 3000)},
    "contents": ["nominal", "scale"],
}


def inputs(case, generator):
    rows, pairs = case["rows"], case["pairs"]
    large = 300 * torch.randn(rows, pairs, generator=generator)
    small = torch.randn(rows, pairs, generator=generator)
    both = torch.cat([large + small, small - large], dim=1)
    return (both[:, torch.randperm(2 * pairs, generator=generator)].contiguous(),)


def reference(x):
    return x.double().sum(dim=-1).to(x.dtype)


def BYTES(case):
    return 4 * case["rows"] * (2 * case["pairs"] + 1)
