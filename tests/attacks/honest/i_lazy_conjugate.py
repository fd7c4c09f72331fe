"""Outputs are views with a conjugate bit and a negative bit, which are not yet resolved.

family: I
problem: i_conjugates
expect: correct
device: cpu, cuda
"""

import torch


def i_conjugates(x, y):
    turned = torch.conj(x * y)
    return turned, turned.imag
