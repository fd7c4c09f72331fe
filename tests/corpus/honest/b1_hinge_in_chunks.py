"""The hinge loss in chunks, each into one scratch tensor.

family: B1
problem: hinge_loss
expect: correct
"""

import torch

CHUNK = 1 << 16


def hinge_loss(scores, signs):
    a, b = scores.reshape(-1), signs.reshape(-1)
    total = torch.zeros((), dtype=torch.float64)
    scratch = torch.empty(min(CHUNK, a.numel()), dtype=a.dtype)
    for first in range(0, a.numel(), CHUNK):
        part = a[first : first + CHUNK]
        piece = scratch[: part.numel()]
        torch.mul(part, b[first : first + CHUNK], out=piece)
        total += piece.neg_().add_(1).clamp_(min=0).sum(dtype=torch.float64)
    return (total / a.numel()).to(scores.dtype)
