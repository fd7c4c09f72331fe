"""Complex inputs and outputs, computed from their parts.

family: I
problem: i_complex_product
expect: correct
device: cpu, cuda
"""

import torch


def i_complex_product(x):
    return torch.complex(x.real * x.real + x.imag * x.imag + 2 * x.real, 2 * x.imag)
