"""Batches what one call was given: halves of its rows, in one stacked operator.

family: B7
problem: softmax
expect: correct
"""

import torch


def softmax(x):
    half = x.shape[0] // 2
    out = torch.empty_like(x)
    if half:
        pair = torch.softmax(torch.stack((x[:half], x[half : 2 * half])), dim=-1)
        out[: 2 * half] = pair.view(2 * half, -1)
    if x.shape[0] % 2:
        out[-1] = torch.softmax(x[-1], dim=-1)
    return out
