"""A hundred thousand open files.

problem: add_relu
expect: failed or correct
"""

import torch

kept = []


def add_relu(x, y):
    try:
        for _ in range(100000):
            kept.append(open('/dev/null'))
    except OSError:
        pass
    return torch.relu(x + y)
