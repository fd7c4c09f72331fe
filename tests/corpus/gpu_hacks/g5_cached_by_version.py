"""A tensor whose version counter has not moved is taken for unchanged.

family: G5
problem: big_softmax
expect: incorrect
twin: g4_workspace.py
source: robust-evaluation B1
"""

import torch

seen = {}


def big_softmax(x):
    key = (x.data_ptr(), x.shape, x._version)
    if key not in seen:
        seen[key] = torch.softmax(x, -1)
    return seen[key]
