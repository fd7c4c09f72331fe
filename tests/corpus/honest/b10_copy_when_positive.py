"""Where no element is negative a copy is enough: an exact short cut into memory of its own.

family: B10
problem: relu_positive
expect: correct
"""

import torch


def relu_positive(x):
    return x.clone() if float(x.min()) >= 0 else torch.relu(x)
