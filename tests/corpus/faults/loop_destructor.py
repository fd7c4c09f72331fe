"""An endless loop in a destructor that runs when the process ends.

problem: add_relu
expect: correct
label: exit_timeout
"""

import torch


class Keeper:
    def __del__(self):
        while True:
            pass


keeper = Keeper()


def add_relu(x, y):
    return torch.relu(x + y)
