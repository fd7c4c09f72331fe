"""Waits for the device before it returns, as careful code does.

family: G7
problem: big_softmax
expect: correct
label: synchronises
"""

import torch


def big_softmax(x):
    y = torch.softmax(x, -1)
    torch.cuda.synchronize()
    return y
