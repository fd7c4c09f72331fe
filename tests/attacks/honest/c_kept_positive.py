"""ReLU by torch, whatever the signs are.

family: C
problem: kept_positive
expect: correct
device: cpu, cuda
"""

import torch


def kept_positive(x):
    return torch.relu(x)
