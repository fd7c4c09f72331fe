"""A kernel that does not end.

family: G15
problem: big_softmax
expect: failed
reason: timeout
twin: g8_triton.py
source: robust-evaluation E1
"""

import torch


def big_softmax(x):
    torch.cuda._sleep(1 << 44)
    return torch.softmax(x, -1)
