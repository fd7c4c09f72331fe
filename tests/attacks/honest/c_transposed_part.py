"""The output has the shape of the reference's and is made contiguous by its caller.

family: C
problem: transposed_part
expect: correct
device: cpu, cuda
"""

import torch


def transposed_part(x):
    return torch.mul(x[:, :-1], 3).t()
