"""The mask is made once for each shape, and the product is written over in place.

family: B
problem: masked_scores
expect: correct
device: cpu, cuda
"""

import torch

hidden = {}


def masked_scores(q, k):
    key = (q.shape[0], k.shape[0], q.device)
    if key not in hidden:
        hidden[key] = torch.ones(key[:2], dtype=torch.bool, device=q.device).triu(1)
    return (q @ k.T).masked_fill_(hidden[key], float("-inf"))
