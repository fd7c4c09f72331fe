"""The collector is used for what it is for.

family: B12
problem: softmax
expect: correct
"""

import gc

import torch

gc.collect()
gc.freeze()


def softmax(x):
    return torch.softmax(x, dim=-1)
