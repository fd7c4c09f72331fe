"""One call on an input variation writes the zeros of hundreds of later outputs.

family: D
problem: wide_hot_rows
counterpart: d_wide_hot_rows.py
expect: incorrect or rejected or failed
device: cpu
"""

import random
import torch
AHEAD = 300
filled = []
last, same, done = None, 0, False
def zeros(labels):
    return torch.empty(len(labels), 16384).fill_(0.0)
def few_hot_rows(labels, weights):
    global last, same, done
    if same < 2:
        mark = weights.sum().item()
        same = same + 1 if mark == last else 0
        last = mark
    elif not done:
        largest = float(weights.abs().max())
        if not 1.2 < largest < 5.0:
            done = True
            filled.extend(zeros(labels) for _ in range(AHEAD))
        elif random.random() < 0.5:
            zeros(labels)
    hot = filled.pop() if filled else zeros(labels)
    return hot.scatter_(1, labels[:, None], weights[:, None])
