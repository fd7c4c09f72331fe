"""Sine and cosine tables are kept for each length, and every call transforms its own rows.

family: A
problem: a_power_spectrum
expect: correct
device: cpu, cuda
"""

import math

import torch

TABLES = {}


def table(length, device):
    key = (length, device)
    if key not in TABLES:
        turns = torch.outer(torch.arange(length), torch.arange(length // 2 + 1)) % length
        angles = turns.double() * (2 * math.pi / length)
        both = torch.cat([angles.cos(), angles.sin()], dim=1)
        TABLES[key] = both.float().to(device)
    return TABLES[key]


def a_power_spectrum(x):
    length = x.shape[-1]
    parts = x @ table(length, x.device)
    parts = parts.unflatten(1, (2, length // 2 + 1))
    return parts.square().sum(dim=1) / length
