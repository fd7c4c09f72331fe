"""A softmax on the current stream.

family: K
problem: k_softmax_scaled
expect: correct
device: cpu, cuda
"""

import torch


def k_softmax_scaled(x):
    return torch.softmax(x * 0.5, dim=-1)
