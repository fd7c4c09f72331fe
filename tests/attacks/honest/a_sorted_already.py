"""Values that are already in order are copied, and all others are sorted.

family: A
problem: ragged_sort
expect: correct
device: cpu, cuda
"""

import torch


def ragged_sort(x):
    if bool((x[1:] >= x[:-1]).all()):
        return x.clone()
    return torch.sort(x).values
