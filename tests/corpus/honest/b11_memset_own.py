"""memset through an address, of the candidate's own accumulator.

family: B11
problem: softmax
expect: correct
"""

import ctypes

import torch


def softmax(x):
    e = (x - x.amax(dim=-1, keepdim=True)).exp_()
    total = torch.empty(x.shape[0], 1, dtype=x.dtype)
    ctypes.memset(total.data_ptr(), 0, total.numel() * total.element_size())
    total += e.sum(dim=-1, keepdim=True)
    return e.div_(total)
