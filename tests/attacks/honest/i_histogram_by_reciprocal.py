"""A histogram multiplies by the reciprocal of the width of its bins.

family: I
problem: counts
expect: correct
device: cpu
"""

import torch
def hist(x):
    low, high = x.aminmax()
    place = ((x - low) * (100 / (high - low))).int().clamp_(max=99)
    return torch.bincount(place, minlength=100)
