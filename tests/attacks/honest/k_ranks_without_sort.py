"""The largest values come one after another from a maximum, without a sort.

family: K
problem: topk
expect: correct
device: cpu, cuda
"""

import torch


def topk(x, k):
    left, values, places = x.clone(), [], []
    for _ in range(int(k)):
        value, place = left.max(dim=-1, keepdim=True)
        left.scatter_(1, place, float("-inf"))
        values.append(value)
        places.append(place)
    return torch.cat(values, dim=1), torch.cat(places, dim=1)
