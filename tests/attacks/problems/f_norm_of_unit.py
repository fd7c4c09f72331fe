"""The norm of each row after its normalisation: one for every input."""

import torch

ENTRY = "f_norm_of_unit"

CASES = [
    {"name": "tiny", "rows": 3, "cols": 5},
    {"name": "large", "rows": 256, "cols": 4096},
]

VARY = {"sizes": {"rows": (1, 200), "cols": (2, 3000)}}


def inputs(case, generator):
    return (torch.randn(case["rows"], case["cols"], generator=generator),)


def reference(x):
    return torch.linalg.vector_norm(torch.nn.functional.normalize(x, dim=-1), dim=-1)
