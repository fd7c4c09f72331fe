"""A dict with a tensor and a pair of tensors."""

import torch

ENTRY = "c_named_parts"

CASES = [
    {"name": "small", "rows": 7, "cols": 33},
    {"name": "large", "rows": 256, "cols": 2048},
]


def inputs(case, generator):
    return (torch.randn(case["rows"], case["cols"], generator=generator),)


def reference(x):
    centre = x.mean(dim=-1)
    return {"centred": x - centre[:, None], "range": (x.amin(dim=-1), x.amax(dim=-1))}
