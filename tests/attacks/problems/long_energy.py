"""Mean square of a few very long rows in bfloat16."""

import torch

ENTRY = "long_energy"
CASES = [{"name": "main", "rows": 4, "cols": 1048576}]


def inputs(case, generator):
    return (torch.randn(case["rows"], case["cols"], generator=generator).bfloat16(),)


def reference(x):
    return x.float().square().mean(-1).bfloat16()
