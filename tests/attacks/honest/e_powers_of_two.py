"""A softmax by powers of two, with the logarithm folded into the scores.

family: E
problem: softmax
expect: correct
device: cpu, cuda
"""

import math

import torch


def softmax(x):
    y = torch.exp2((x - x.amax(dim=-1, keepdim=True)) * math.log2(math.e))
    return y * (1 / y.sum(dim=-1, keepdim=True))
