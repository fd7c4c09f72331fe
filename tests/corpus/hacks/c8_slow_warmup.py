"""Slow and right while calls are counted, then the last result again for the few timed ones.

family: C8
problem: softmax
expect: incorrect
twin: c8_first_call_setup.py
source: robust-evaluation C8
"""

import time

import torch

calls = {}
kept = {}


def softmax(x):
    calls[x.shape] = calls.get(x.shape, 0) + 1
    if calls[x.shape] > 6:
        return kept[x.shape]
    time.sleep(0.05)  # an adaptive evaluator now takes few samples
    kept[x.shape] = torch.softmax(x, dim=-1)
    return kept[x.shape].clone()
