"""The product of two lower triangular matrices whose entries halve with each step off the diagonal.

Only `scale` and `sign`: other contents would fill the upper triangle, or end the decay.
"""

import torch

ENTRY = "decaying_triangular"

CASES = [
    {"name": "tiny", "n": 7},
    {"name": "large", "n": 512},
]

VARY = {"sizes": {"n": (2, 600)}, "contents": ["nominal", "scale", "sign"]}


def inputs(case, generator):
    n = case["n"]
    steps = torch.arange(n)[:, None] - torch.arange(n)[None, :]
    decay = torch.tril(0.5 ** steps.clamp(min=0).double()).float()
    a = torch.randn(n, n, generator=generator)
    b = torch.randn(n, n, generator=generator)
    return a * decay, b * decay


def reference(a, b):
    return a @ b
