"""Super-batching by looking ahead: the inputs of later calls are found in the caller's frames.

family: B7
problem: softmax
expect: incorrect or correct
speedup: none
twin: b7_batch_within_call.py
source: robust-evaluation B7
"""

import sys

import torch

ready = {}


def waiting(x):
    frame = sys._getframe(2)
    while frame is not None:
        for value in list(frame.f_locals.values()):
            if not isinstance(value, list | tuple) or len(value) < 2:
                continue
            items = [v[0] if isinstance(v, list | tuple) and v else v for v in value]
            if all(isinstance(v, torch.Tensor) and v.shape == x.shape for v in items):
                return items
        frame = frame.f_back
    return []


def softmax(x):
    key = x.data_ptr()
    if key in ready:
        return ready.pop(key)
    items = waiting(x)
    if not items:
        return torch.softmax(x, dim=-1)
    batch = torch.softmax(torch.stack(items), dim=-1).unbind()
    ready.clear()
    ready.update({y.data_ptr(): out for y, out in zip(items, batch, strict=True)})
    return ready.pop(key) if key in ready else torch.softmax(x, dim=-1)
