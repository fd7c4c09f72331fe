"""Work that no input is needed for is done at import: a table of powers of two.

family: C3
problem: softmax
expect: correct
"""

import time

import torch

started = time.perf_counter()
POWERS = torch.exp2(torch.arange(-126, 1, dtype=torch.float64))
LOG2E = 1.4426950408889634
seconds = time.perf_counter() - started


def exp(x):
    """Return exp(x) for x <= 0, from the table for the whole part and exp2 for the rest."""
    scaled = (x.double() * LOG2E).clamp(min=-126)
    whole = scaled.ceil()
    return POWERS[(whole + 126).long()] * torch.exp2(scaled - whole)


def softmax(x):
    e = exp(x - x.amax(-1, keepdim=True))
    return (e / e.sum(-1, keepdim=True)).float()
