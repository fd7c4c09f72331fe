"""A kernel is left running after each call, so that the baseline is slow.

family: G1
problem: big_softmax
expect: rejected
finding: unfinished_work
twin: g1_joined_streams.py
source: robust-evaluation F
"""

import torch

side = None


def big_softmax(x):
    global side
    if side is None:
        side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        torch.cuda._sleep(4_000_000)
    return torch.softmax(x, -1)
