"""The random numbers of the reference, drawn in the call.

family: D
problem: noisy
expect: correct
device: cpu
"""

import torch
def noisy(x):
    return x + torch.randn(x.shape)
