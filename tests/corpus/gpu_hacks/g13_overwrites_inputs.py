"""The result is written over the input, which saves the memory of an output.

family: G13
problem: big_softmax
expect: rejected
finding: input_mutation
twin: g8_triton.py
source: robust-evaluation B11
"""

import torch


def big_softmax(x):
    return torch.softmax(x, -1, out=x)
