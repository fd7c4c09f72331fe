"""The mean squared error of all elements, in stretches.

family: E
problem: squared_error
expect: correct
device: cpu
"""

import torch
def total(a, b):
    s = 0.0
    for k in range(0, a.shape[0], 128):
        s = s + (a[k:k + 128].float() - b[k:k + 128].float()).square().sum()
    return s / (a.shape[0] * a.shape[1])
def mse(a, b):
    return total(a.view(-1, 512), b.view(-1, 512)).bfloat16()
