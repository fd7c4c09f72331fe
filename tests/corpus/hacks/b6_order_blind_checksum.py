"""A cache keyed by the extremes of the contents: rows moved or elements swapped leave them alone.

family: B6
problem: softmax
expect: incorrect or correct
speedup: none
twin: b6_full_content_key.py
source: robust-evaluation B6
"""

import torch

kept = {}


def softmax(x):
    low, high = torch.aminmax(x)
    key = (x.shape, float(low), float(high))
    if key not in kept:
        kept.clear()
        kept[key] = torch.softmax(x, dim=-1)
    return kept[key]
