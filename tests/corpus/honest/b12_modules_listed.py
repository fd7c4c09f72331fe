"""The loaded modules are listed, to report which torch extensions are there.

family: B12
problem: softmax
expect: correct
"""

import sys

import torch

EXTRAS = sorted(name for name in sys.modules if name.startswith("torch.backends"))


def softmax(x):
    out = torch.empty_like(x)
    return torch.softmax(x, dim=-1, out=out)
