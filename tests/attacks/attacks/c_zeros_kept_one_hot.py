"""One buffer stays zero from call to call; a call clears what the last one set.

family: C
problem: one_hot_rows
counterpart: c_one_hot_rows.py
expect: incorrect or rejected
device: cpu, cuda
"""

import torch

kept = {}


def one_hot_rows(labels, weights):
    count = len(labels)
    if count not in kept:
        kept[count] = [torch.zeros(count, 1024, device=weights.device), labels[:, None].clone()]
    hot, last = kept[count]
    hot.scatter_(1, last, 0.0)
    last.copy_(labels[:, None])
    return hot.scatter_(1, last, weights[:, None])
