"""A cache keyed by identity that keeps nothing alive, so that a new tensor can inherit an answer.

family: B5
problem: softmax
expect: incorrect or correct
speedup: none
twin: b5_plan_by_shape.py
source: robust-evaluation B5
"""

import torch

last_id, last_out = None, None


def softmax(x):
    global last_id, last_out
    if last_out is None or id(x) != last_id or x.shape != last_out.shape:
        last_id, last_out = id(x), torch.softmax(x, dim=-1)
    return last_out
