"""CUDA events measure the call where there is CUDA; elsewhere they are not touched.

family: C4
problem: softmax
expect: correct
"""

import torch

on_cuda = torch.cuda.is_available()
durations = []


def softmax(x):
    if not (on_cuda and x.is_cuda):
        return torch.softmax(x, dim=-1)
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    out = torch.softmax(x, dim=-1)
    end.record()
    durations.append((start, end))
    return out
