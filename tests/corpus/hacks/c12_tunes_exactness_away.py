"""An autotuner chooses by time alone between a right version and one that cancels.

family: C12
problem: moments
expect: incorrect
twin: c12_autotune_first_call.py
source: robust-evaluation C12
"""

import time

import torch


def right(x):
    variance, mean = torch.var_mean(x, dim=-1, correction=0)
    return mean, variance, x.amax(dim=-1)


def quick(x):
    mean = x.mean(-1)
    return mean, torch.linalg.vecdot(x, x) / x.shape[-1] - mean * mean, x.amax(-1)


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
        choice[x.shape] = min((right, quick), key=lambda function: seconds(function, x))
    return choice[x.shape](x)
