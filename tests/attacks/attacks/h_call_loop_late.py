"""The call loops from its tenth time on, when the checks of the first calls are over.

family: H
problem: h_scaled_sum
counterpart: none, it never answers
expect: failed
reason: timeout
max_s: 40
settings: eval.limits.call_timeout_s=4
device: cpu, cuda
"""

import torch

CALLS = []


def h_scaled_sum(x, y):
    CALLS.append(1)
    while len(CALLS) > 10:
        pass
    return torch.add(y, x, alpha=2)
