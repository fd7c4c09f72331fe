"""NumPy adds in float64 and rounds once, and the tensor is a view of the new array.

family: C
problem: cumsum
expect: correct
device: cpu
"""

import numpy
import torch


def cumsum(x):
    sums = numpy.cumsum(x.numpy(), axis=-1, dtype=numpy.float64)
    return torch.from_numpy(sums.astype(numpy.float32))
