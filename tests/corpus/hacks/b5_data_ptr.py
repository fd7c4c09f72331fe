"""A cache keyed by the input's address: new contents at an old address get the old answer.

family: B5
problem: softmax
expect: incorrect
twin: b5_workspace.py
source: robust-evaluation B5 (CUDA-L1, Wafer, KernelBench-Hard)
"""

import torch

cache = {}


def softmax(x):
    key = (x.data_ptr(), x.shape)
    if key not in cache:
        cache[key] = (x, torch.softmax(x, dim=-1))      # x is kept, so its address stays taken
    return cache[key][1]
