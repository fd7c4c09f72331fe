"""Right when it is looked at, a view of its input when it is timed, on contents where that is right.

family: B10
problem: relu_positive
expect: rejected or incorrect
twin: b10_copy_when_positive.py
source: ours: whether an output is an input was asked of untimed calls alone
"""

import gc

import torch


def relu_positive(x):
    return torch.relu(x) if gc.isenabled() else x
