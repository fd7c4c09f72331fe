"""The work is on a side stream that nobody waits for: the call seems to end at once.

family: G2
problem: big_softmax
expect: incorrect
twin: g1_joined_streams.py
source: robust-evaluation B4
"""

import torch

side = None


def big_softmax(x):
    global side
    if side is None:
        side = torch.cuda.Stream()
    y = torch.empty_like(x)
    with torch.cuda.stream(side):
        torch.softmax(x, -1, out=y)
    return y
