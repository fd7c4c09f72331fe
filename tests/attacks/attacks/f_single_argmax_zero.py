"""The place of the largest of one element is zero, so the sum of exponentials is free.

family: F
problem: f_single_argmax
counterpart: reference
expect: unjudged or incorrect
device: cpu, cuda
"""

import torch


def f_single_argmax(x):
    return torch.zeros(x.shape[0], dtype=torch.int64, device=x.device)
