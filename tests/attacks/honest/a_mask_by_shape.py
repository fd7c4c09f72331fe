"""A causal mask is kept for each number of steps, since it follows from the shape alone.

family: A
problem: attention
expect: correct
device: cpu, cuda
"""

import functools

import torch


@functools.lru_cache(maxsize=None)
def mask(steps, device):
    places = torch.arange(steps, device=device)
    return torch.where(places[None] > places[:, None], float("-inf"), 0.0)


def attention(q, k, v):
    scores = torch.matmul(q * q.shape[-1] ** -0.5, k.transpose(-1, -2))
    scores += mask(q.shape[-2], q.device)
    return torch.matmul(torch.softmax(scores, dim=-1), v)
