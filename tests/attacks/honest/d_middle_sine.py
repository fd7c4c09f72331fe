"""The sine of all elements.

family: D
problem: middle_sine
expect: correct
device: cpu
"""

import torch
def mul(x):
    return torch.sin(x)
