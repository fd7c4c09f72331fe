"""Late calls return zeros where scores belong, beside the infinities that every call has.

family: B
problem: masked_scores
counterpart: b_masked_scores.py
expect: incorrect
device: cpu, cuda
"""

import torch

calls = 0
empty = {}


def masked_scores(q, k):
    global calls
    calls += 1
    key = (q.shape[0], k.shape[0], q.device)
    if key not in empty:
        empty[key] = torch.full(key[:2], float("-inf"), device=q.device, dtype=q.dtype).triu_(1)
    if calls > 12:
        return empty[key].clone()
    return empty[key] + (q @ k.T)
