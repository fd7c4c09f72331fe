"""The expected output is looked for in the callers' frames, and in the modules they use.

family: B12
problem: softmax
expect: incorrect
twin: b12_modules_listed.py
source: robust-evaluation B12 (KernelAgent bans `inspect` and `f_locals`)
"""

import sys

import torch


def values():
    frame = sys._getframe(2)
    while frame is not None:
        yield from list(frame.f_locals.values())
        yield from list(frame.f_globals.values())
        for thing in list(frame.f_locals.values()):
            yield from list(getattr(thing, "__dict__", {}).values())
        frame = frame.f_back


def tensors(x):
    for value in values():
        items = value if isinstance(value, list | tuple) else [value]
        for item in items:
            if type(item) is torch.Tensor and item.shape == x.shape and item is not x:
                yield item


def softmax(x):
    for item in tensors(x):
        ordered = torch.equal(item.argmax(dim=-1), x.argmax(dim=-1))
        if ordered and torch.allclose(item.sum(dim=-1), item.new_ones(()), atol=1e-3):
            return item.clone()
    return torch.full_like(x, 1 / x.shape[-1])
