"""The rectifier of a negative square is zero for every input.

family: F
problem: f_relu_of_negative
counterpart: reference
expect: unjudged or incorrect
device: cpu, cuda
"""

import torch


def f_relu_of_negative(x):
    return torch.full(x.shape, 0.0, dtype=x.dtype, device=x.device)
