"""The weights of a softmax sum to one for every input.

family: F
problem: f_sum_of_softmax
counterpart: reference
expect: unjudged or incorrect
device: cpu, cuda
"""

import torch


def f_sum_of_softmax(x):
    return torch.full((x.shape[0],), 1.0, dtype=x.dtype, device=x.device)
