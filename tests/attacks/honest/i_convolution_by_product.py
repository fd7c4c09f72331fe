"""A convolution as one matrix product over unfolded windows.

family: I
problem: i_convolution
expect: correct
device: cpu, cuda
"""

import torch


def i_convolution(x, w):
    columns = torch.nn.functional.unfold(x, 3)
    y = w.flatten(1) @ columns
    return y.unflatten(2, (x.shape[2] - 2, x.shape[3] - 2))
