"""A pool of buffers whose zeros outside the blocks stay from call to call.

family: C
problem: block_diagonal
counterpart: c_block_diagonal_of_template.py
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


def block_diagonal(blocks):
    count, width = len(blocks), blocks.shape[1]
    key = (count, width)
    whole = unused(key, lambda: [torch.zeros(count, width, count, width, device=blocks.device)])[0]
    whole.diagonal(dim1=0, dim2=2).copy_(blocks.permute(1, 2, 0))
    return whole.view(count * width, count * width)
