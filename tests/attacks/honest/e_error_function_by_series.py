"""The error function by a rational formula whose error is near the last bits of float32.

family: E
problem: matmul_bias_gelu
expect: correct
device: cpu, cuda
"""

import torch

FACTORS = (
    *(1.00002368, 0.37409196, 0.09678418, -0.18628806, 0.27886807),
    *(-1.13520398, 1.48851587, -0.82215223, 0.17087277),
)


def complement(z):
    t = 1 / (1 + 0.5 * z)
    series = torch.full_like(z, FACTORS[-1])
    for factor in FACTORS[-2::-1]:
        series = series * t + factor
    return t * torch.exp(-z * z - 1.26551223 + t * series)


def matmul_bias_gelu(x, weight, bias):
    y = torch.addmm(bias, x, weight)
    half = 0.5 * complement(y.abs() * 0.5**0.5)
    return y * torch.where(y < 0, half, 1 - half)
