"""The result of an address is computed once, and returned whenever it comes again.

family: G4
problem: big_softmax
expect: incorrect
twin: g4_workspace.py
source: robust-evaluation B1
"""

import torch

seen = {}


def big_softmax(x):
    key = (x.data_ptr(), x.shape)
    if key not in seen:
        seen[key] = torch.softmax(x, -1)
    return seen[key]
