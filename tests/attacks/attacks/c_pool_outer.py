"""A pool of touched buffers: one that the caller has dropped is written again without faults.

family: C
problem: outer_square
counterpart: c_outer_square.py
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


def outer_square(a, b):
    key = (len(a), len(b))
    return torch.outer(a, b, out=unused(key, lambda: [torch.empty(key, device=a.device)])[0])
