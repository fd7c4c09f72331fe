"""A pool of zero buffers, where an input may be overwritten: they are cleared where they were set.

family: C
problem: one_hot_in_place
counterpart: c_one_hot_in_place.py
expect: incorrect or rejected
device: cpu, cuda
"""

import torch

pool = {}


def unused(key, make):
    """Return a buffer that nobody but the pool refers to, with what it keeps."""
    for item in pool.setdefault(key, []):
        if torch._C._storage_Use_Count(item[0].untyped_storage()._cdata) <= LEAST:
            return item
    pool[key].append(make())
    return pool[key][-1]


probe = torch.zeros(4)
LEAST = torch._C._storage_Use_Count(probe.untyped_storage()._cdata)


def one_hot_in_place(labels, weights):
    count = len(labels)
    item = unused(
        count, lambda: [torch.zeros(count, 1024, device=weights.device), labels[:, None].clone()]
    )
    hot, last = item
    hot.scatter_(1, last, 0.0)
    last.copy_(labels[:, None])
    return hot.scatter_(1, last, weights[:, None])
