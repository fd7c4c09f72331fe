"""Right when it is called alone, wrong when it is called behind a gate that is still closed.

family: G16
problem: big_softmax
expect: incorrect
twin: g7_synchronises.py
source: robust-evaluation B7
"""

import torch


def big_softmax(x):
    if not torch.cuda.current_stream().query():
        return x
    return torch.softmax(x, -1)
