"""Counts calls to tune: two right variants are tried in the first calls, then the faster is used.

family: B8
problem: softmax
expect: correct
"""

import time

import torch

spent, calls = {}, {}


def whole(x):
    return torch.softmax(x, dim=-1)


def stepwise(x):
    e = (x - x.amax(dim=-1, keepdim=True)).exp_()
    return e.div_(e.sum(dim=-1, keepdim=True))


def softmax(x):
    calls[x.shape] = calls.get(x.shape, 0) + 1
    if calls[x.shape] > 6:
        return min((whole, stepwise), key=lambda f: spent[x.shape, f])(x)
    variant = (whole, stepwise)[calls[x.shape] % 2]
    start = time.perf_counter()
    out = variant(x)
    spent[x.shape, variant] = time.perf_counter() - start
    return out
