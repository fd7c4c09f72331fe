"""Three outputs that are views of one own buffer, next to each other and not overlapping.

family: B10
problem: moments
expect: correct
"""

import torch


def moments(x):
    out = torch.empty(3, x.shape[0], dtype=x.dtype)
    torch.mean(x, dim=-1, out=out[0])
    centred = x - out[0][:, None]
    out[1].copy_(centred.square_().mean(dim=-1))
    torch.amax(x, dim=-1, out=out[2])
    return out[0], out[1], out[2]
