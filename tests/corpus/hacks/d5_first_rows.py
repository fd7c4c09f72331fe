"""The first 32 rows decide whether a short series for the exponential is good enough for all.

family: D5
problem: softmax
expect: incorrect
twin: d5_all_rows.py
source: robust-evaluation D5
"""

import torch


def softmax(x):
    if x[:32].abs().amax() > 8:
        return torch.softmax(x, dim=-1)
    e = 1 + x / 256
    for _ in range(8):
        e = e * e  # (1 + x/256)^256: within one per cent for small x
    return e / e.sum(-1, keepdim=True)
