"""Half of the allowed memory is scratch space for a time, and then freed.

family: H
problem: h_scaled_sum
expect: correct
settings: eval.limits.memory_bytes=1073741824
device: cpu, cuda
"""

import torch

FIRST = []


def h_scaled_sum(x, y):
    if not FIRST:
        FIRST.append(1)
        torch.ones(1 << 27)
    return torch.add(y, x, alpha=2)
