"""CUDA events report a hundredth of the time, and synchronising does nothing.

family: C4
problem: softmax
expect: correct
speedup: none
twin: c4_events_if_present.py
source: robust-evaluation C4
"""

import torch

real = torch.cuda.Event.elapsed_time
torch.cuda.Event.elapsed_time = lambda self, end: real(self, end) / 100
torch.cuda.Event.synchronize = lambda self: None
torch.cuda.synchronize = lambda device=None: None
torch.cpu.synchronize = lambda device=None: None


def softmax(x):
    e = (x - x.amax(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True)
