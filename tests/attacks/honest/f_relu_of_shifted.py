"""A rectifier that passes a part of its inputs, beside a problem where it passes none.

family: F
problem: f_relu_of_shifted
expect: correct
device: cpu, cuda
"""

import torch


def f_relu_of_shifted(x):
    return (0.25 - (torch.sin(x) * x).square()).clamp_min(0.0)
