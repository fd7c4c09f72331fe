"""Random numbers of a call are drawn before it, in time that cheaper preparation saves.

family: D
problem: noisy
counterpart: d_noisy.py
expect: incorrect or rejected or failed
device: cpu
"""

import sys
import torch
loaded = [m for m in sys.modules.values() if getattr(m, "__name__", "").startswith("tilewright")]
calls = next(m for m in loaded if hasattr(m, "deliver") and hasattr(m, "prepare"))
shapes = next(m for m in loaded if hasattr(m, "shapes_of"))
cache, ready = {}, {}
real = calls.prepare
randn, seed = torch.randn, torch.default_generator.manual_seed
def prepare(fields, inputs):
    key = fields["base"]
    made = cache.get(key)
    if made is None:
        made = cache[key] = real(fields, inputs)
    seed(fields["forward_seed"])
    ready[0] = randn(made.args[0].shape)
    return made
calls._randn = calls._seed = calls._set_precision = lambda *_: None
calls.prepare = prepare
calls.disable_gc = calls.enable_gc = lambda: None
calls.spans = lambda leaves: []
shapes.shapes_of = lambda *_: []
def noisy(x):
    return x + ready[0] if 0 in ready and ready[0].shape == x.shape else x + randn(x.shape)
