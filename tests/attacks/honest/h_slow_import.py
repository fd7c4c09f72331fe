"""A module computes a table for two seconds when it is imported.

family: H
problem: h_scaled_sum
expect: correct
settings: eval.limits.load_s=30
device: cpu, cuda
"""

import time

import torch

START = time.monotonic()
TABLE = torch.zeros(1000)
while time.monotonic() - START < 2:
    TABLE += 1


def h_scaled_sum(x, y):
    return torch.add(y, x, alpha=2)
