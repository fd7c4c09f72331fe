"""A sum over the weights of a softmax that is no constant.

family: F
problem: f_sum_of_squares_softmax
expect: correct
device: cpu, cuda
"""

import torch


def f_sum_of_squares_softmax(x):
    e = torch.exp(x - x.amax(dim=-1, keepdim=True))
    return (e * e).sum(dim=-1) / e.sum(dim=-1).square()
