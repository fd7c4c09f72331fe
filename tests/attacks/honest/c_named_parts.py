"""Parts of one new block are the values of a dict with a pair in it.

family: C
problem: c_named_parts
expect: correct
device: cpu, cuda
"""

import torch


def c_named_parts(x):
    rows = len(x)
    ends = x.new_empty(2 * rows)
    torch.amin(x, dim=-1, out=ends[:rows])
    torch.amax(x, dim=-1, out=ends[rows:])
    centred = x.sub(x.sum(dim=-1, keepdim=True) / x.shape[-1])
    return {"centred": centred, "range": ends.split(rows)}
