"""Later calls report an order of the output that no copy has made, and that the reference lacks.

family: C
problem: transposed_part
counterpart: c_transposed_part.py
expect: incorrect or rejected
device: cpu, cuda
"""

import sys

import torch

FIRST = 30
count = 0
calls = sys.modules.get("tilewright.runner.calls")
if calls is not None:
    dense = calls._dense
    calls._dense = lambda leaf, *more: leaf.detach() if count > FIRST else dense(leaf, *more)


def transposed_part(x):
    global count
    count += 1
    return torch.mul(x[:, :-1], 3).t()
