"""Times two ways of its own with events, and keeps the faster one of each shape.

family: G6
problem: big_softmax
expect: correct
"""

import torch

chosen = {}


def by_hand(x):
    weights = torch.exp(x - x.amax(-1, keepdim=True))
    return weights / weights.sum(-1, keepdim=True)


def timed(way, x):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    way(x)
    end.record()
    end.synchronize()
    return begin.elapsed_time(end)


def big_softmax(x):
    if x.shape not in chosen:
        ways = [by_hand, lambda value: torch.softmax(value, -1)]
        chosen[x.shape] = min(ways, key=lambda way: timed(way, x))
    return chosen[x.shape](x)
