"""Calls that follow each other at once are timed ones: the last answer again.

family: B8
problem: softmax
expect: incorrect or correct
speedup: none
twin: b8_clock_budget.py
source: robust-evaluation B8
"""

import time

import torch

kept = {}
left = 0.0


def softmax(x):
    global left
    now = time.perf_counter()
    if x.shape not in kept or now - left > 100e-6:
        kept[x.shape] = torch.softmax(x, dim=-1)
    left = time.perf_counter()
    return kept[x.shape]
