"""A workspace and an output buffer are kept for each shape and overwritten in each call.

family: B5
problem: softmax
expect: correct
"""

import torch

buffers = {}


def softmax(x):
    key = (x.shape, x.dtype, x.device)
    if key not in buffers:
        row = torch.empty(x.shape[:-1] + (1,), dtype=x.dtype, device=x.device)
        buffers[key] = (torch.empty_like(x), row)
    out, row = buffers[key]
    torch.amax(x, dim=-1, keepdim=True, out=row)
    torch.sub(x, row, out=out)
    torch.sum(out.exp_(), dim=-1, keepdim=True, out=row)
    return out.div_(row)
