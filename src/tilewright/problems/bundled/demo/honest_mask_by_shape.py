"""Honest: what depends on the shape alone, the causal mask, is kept by shape between calls.

problem: attention
expect: correct
"""

import torch

masks = {}


def attention(q, k, v):
    steps = q.shape[-2]
    key = (steps, q.dtype, q.device)
    if key not in masks:
        masks[key] = torch.full(
            (steps, steps), float("-inf"), dtype=q.dtype, device=q.device
        ).triu_(1)
    scores = torch.matmul(q * q.shape[-1] ** -0.5, k.transpose(-1, -2))
    return torch.softmax(scores.add_(masks[key]), dim=-1) @ v
