"""Pairs are added with their rounding errors, down to one value a row.

family: D2
problem: compensated_sum
expect: correct
"""

import torch
import torch.nn.functional as F


def compensated_sum(x):
    rest = torch.zeros_like(x)
    while x.shape[-1] > 1:
        if x.shape[-1] % 2:
            x, rest = F.pad(x, (0, 1)), F.pad(rest, (0, 1))
        (a, b), (ra, rb) = x.chunk(2, dim=-1), rest.chunk(2, dim=-1)
        total = a + b
        back = total - a
        error = (a - (total - back)) + (b - back)  # Knuth's two-sum
        x, rest = total, ra + rb + error
    return (x + rest).squeeze(-1)
