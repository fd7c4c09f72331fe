"""It forbids itself memory and files, and then needs both.

problem: add_relu
expect: failed
"""

import resource

import torch

resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
resource.setrlimit(resource.RLIMIT_DATA, (1 << 20, 1 << 20))


def add_relu(x, y):
    return torch.relu(torch.cat([x + y] * 64))[: len(x)]
