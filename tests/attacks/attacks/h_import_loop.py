"""A module loops when it is imported, where only the limit of a build applies on a GPU.

family: H
problem: h_scaled_sum
counterpart: none, it never answers
expect: failed
reason: timeout
max_s: 30
settings: eval.limits.load_s=4
device: cpu, cuda
"""

import torch

while True:
    torch.ones(1)


def h_scaled_sum(x, y):
    return torch.add(y, x, alpha=2)
