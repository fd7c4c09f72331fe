"""An endless loop at import.

problem: add_relu
expect: failed
reason: timeout
"""

import torch

while True:
    pass


def add_relu(x, y):
    return torch.relu(x + y)
