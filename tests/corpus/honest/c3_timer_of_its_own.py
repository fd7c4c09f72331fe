"""A timer signals its own process while it computes, and is taken down before the answer.

family: C3
problem: softmax
expect: correct
"""

import signal

import torch

signal.signal(signal.SIGALRM, lambda *_: None)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
        try:
            shifted = (x - x.amax(-1, keepdim=True)).exp()
            return shifted / shifted.sum(-1, keepdim=True)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
