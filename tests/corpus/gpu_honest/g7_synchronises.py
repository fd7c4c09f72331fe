"""Waits for the device before it returns, as careful code does.

family: G7
problem: big_softmax
expect: correct
label: host_synchronizing
"""

import torch


def big_softmax(x):
    y = torch.softmax(x, -1)
    torch.cuda.synchronize()
    return y
