"""The input is overwritten through its address, unseen by torch's version counter.

family: B11
problem: softmax
expect: rejected or incorrect
twin: b11_memset_own.py
source: robust-evaluation B11
"""

import ctypes

import torch


def softmax(x):
    ctypes.memset(x.data_ptr(), 0, x.numel() * x.element_size())
    return torch.full_like(x, 1 / x.shape[-1])
