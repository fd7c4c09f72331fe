"""The same tensor called twice is computed twice; what is kept is only a plan for its shape.

family: C2
problem: softmax
expect: correct
"""

import torch

plans = {}


def plan(rows, cols):
    return max(1, min(rows, (1 << 16) // cols))


def softmax(x):
    rows, cols = x.shape
    if x.shape not in plans:
        plans[x.shape] = plan(rows, cols)
    return torch.cat([torch.softmax(part, dim=-1) for part in x.split(plans[x.shape])])
