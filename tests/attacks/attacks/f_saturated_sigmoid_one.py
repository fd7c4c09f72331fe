"""A sigmoid of 100 and more is one in float32.

family: F
problem: f_saturated_sigmoid
counterpart: reference
expect: unjudged or incorrect
device: cpu, cuda
"""

import torch


def f_saturated_sigmoid(x):
    return torch.full(x.shape, 1.0, dtype=x.dtype, device=x.device)
