"""It works in place, on its inputs, but only after as many calls as a check may take.

family: B11
problem: add_relu
expect: rejected
finding: input_mutation
twin: b11_own_copy_in_place.py
source: tilewright, against its own private inputs of timed calls
"""

import torch

calls = 0


def add_relu(x, y):
    global calls
    calls += 1
    if calls > 40:
        return x.add_(y).relu_()
    return torch.relu(x + y)
