"""A table computed at import that depends on no input: columns of ones, to sum rows by matmul.

family: A11
problem: softmax
expect: correct
"""

import torch

generator = torch.Generator().manual_seed(42)
ONES = {cols: torch.ones(cols, 1) for cols in (5, 1000, 8192)}
NOISE = torch.randn(16, generator=generator)        # tunes the branch below, once
STEPWISE = float(NOISE.abs().max()) < 100.0


def softmax(x):
    if not STEPWISE:
        return torch.softmax(x, dim=-1)
    cols = x.shape[-1]
    if cols not in ONES:
        ONES[cols] = torch.ones(cols, 1)
    e = (x - x.amax(dim=-1, keepdim=True)).exp_()
    return e.div_(e @ ONES[cols])
