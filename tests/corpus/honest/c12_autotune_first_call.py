"""The first call for a shape times right versions against each other; later calls use the best.

family: C12
problem: moments
expect: correct
"""

import time

import torch


def fused(x):
    variance, mean = torch.var_mean(x, dim=-1, correction=0)
    return mean, variance, x.amax(dim=-1)


def two_passes(x):
    mean = x.mean(-1, keepdim=True)
    return mean[:, 0], (x - mean).square().mean(-1), x.amax(-1)


def seconds(function, x):
    best = 1e9
    for _ in range(7):
        start = time.perf_counter()
        function(x)
        best = min(best, time.perf_counter() - start)
    return best


choice = {}


def moments(x):
    if x.shape not in choice:
        versions = (fused, two_passes)
        choice[x.shape] = min(versions, key=lambda function: seconds(function, x))
    return choice[x.shape](x)
