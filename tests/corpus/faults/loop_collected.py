"""An endless loop in the destructor of a temporary, within the call.

problem: add_relu
expect: failed
reason: timeout
"""

import torch


class Keeper:
    def __del__(self):
        while True:
            pass


def add_relu(x, y):
    Keeper()
    return torch.relu(x + y)
