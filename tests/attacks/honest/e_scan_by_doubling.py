"""A scan that doubles its step, so that sums are added in another order.

family: E
problem: cumsum
expect: correct
device: cpu, cuda
"""

import torch


def cumsum(x):
    y, step = x.clone(), 1
    while step < x.shape[-1]:
        z = y.clone()
        z[:, step:] += y[:, :-step]
        y, step = z, 2 * step
    return y
