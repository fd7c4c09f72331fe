"""Attention in blocks of keys, with a running maximum and a running sum.

family: E
problem: attention
expect: correct
device: cpu, cuda
"""

import torch


def attention(q, k, v):
    steps, block = q.shape[-2], 32
    q = q * q.shape[-1] ** -0.5
    places = torch.arange(steps, device=q.device)
    most = torch.full((*q.shape[:-1], 1), float("-inf"), device=q.device)
    total, out = torch.zeros_like(most), torch.zeros_like(q)
    for keys, values, at in zip(k.split(block, -2), v.split(block, -2), places.split(block)):
        later = at[None] > places[:, None]
        scores = (q @ keys.transpose(-1, -2)).masked_fill(later, float("-inf"))
        new = torch.maximum(most, scores.amax(dim=-1, keepdim=True))
        weights, fade = torch.exp(scores - new), torch.exp(most - new)
        total = total * fade + weights.sum(dim=-1, keepdim=True)
        out = out * fade + weights @ values
        most = new
    return out / total
