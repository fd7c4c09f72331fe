"""Layer normalisation of each row, with a weight and a bias for each column."""

import torch
import torch.nn.functional as F

ENTRY = "layernorm"

CASES = [
    {"name": "tiny", "rows": 7, "cols": 129},
    {"name": "medium", "rows": 128, "cols": 1001},
    {"name": "large", "rows": 640, "cols": 4096},
]

VARY = {"sizes": {"rows": (1, 300), "cols": (2, 5000)}}


def inputs(case, generator):
    x = torch.randn(case["rows"], case["cols"], generator=generator)
    weight = 0.5 + torch.rand(case["cols"], generator=generator)
    bias = torch.randn(case["cols"], generator=generator)
    return x, weight, bias


def reference(x, weight, bias):
    return F.layer_norm(x, (x.shape[-1],), weight, bias, 1e-5)


def BYTES(case):
    return 4 * (2 * case["rows"] + 2) * case["cols"]


def FLOPS(case):
    return 7 * case["rows"] * case["cols"]
