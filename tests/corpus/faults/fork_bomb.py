"""Every process forks for ever.

problem: add_relu
expect: failed or correct
"""

import os

import torch


def add_relu(x, y):
    for _ in range(10000):
        try:
            if os.fork() == 0:
                while True:
                    try:
                        os.fork()
                    except OSError:
                        pass
        except OSError:
            break
    return torch.relu(x + y)
