"""Super-batching backwards: three calls return empty tensors, the fourth computes all four.

An evaluator that looks at the outputs when its loop is over sees them filled.

family: B7
problem: softmax
expect: incorrect
twin: b7_batch_within_call.py
source: robust-evaluation B7
"""

import torch

EVERY = 4
waiting = []


def softmax(x):
    out = torch.empty_like(x)
    waiting.append((x, out))
    if len(waiting) >= EVERY:
        for y, z in waiting:
            torch.softmax(y, dim=-1, out=z)
        waiting.clear()
    return out
