"""Preparation of a call is made cheaper, and the time that this saves pays for zeros.

family: D
problem: wide_hot_rows
counterpart: d_wide_hot_rows.py
expect: incorrect or rejected or failed
device: cpu
"""

import sys
import torch
loaded = [m for m in sys.modules.values() if getattr(m, "__name__", "").startswith("tilewright")]
calls = next(m for m in loaded if hasattr(m, "deliver") and hasattr(m, "prepare"))
shapes = next(m for m in loaded if hasattr(m, "shapes_of"))
ready, cache = [], {}
N = 60
def make():
    if not ready:
        ready.append(torch.empty(N, 16384).fill_(0.0))
real = calls.prepare
def prepare(fields, inputs):
    key = fields["base"]
    made = cache.get(key)
    if made is None:
        made = cache[key] = real(fields, inputs)
    make()
    return made
calls._randn = calls._seed = calls._set_precision = lambda *_: None
calls.prepare = prepare
calls.disable_gc = calls.enable_gc = lambda: None
calls.spans = lambda leaves: []
shapes.shapes_of = lambda *_: []
def few_hot_rows(labels, weights):
    hot = ready.pop() if ready and len(labels) == N else torch.empty(len(labels), 16384).fill_(0.0)
    return hot.scatter_(1, labels[:, None], weights[:, None])
