"""The garbage collector is frozen at import, and paused while a call works.

family: B
problem: moments
expect: correct
device: cpu, cuda
"""

import gc

import torch

gc.collect()
gc.freeze()


def moments(x):
    running = gc.isenabled()
    gc.disable()
    try:
        mean = x.mean(dim=-1)
        variance = (x - mean[:, None]).square().mean(dim=-1)
        return mean, variance, torch.amax(x, dim=-1)
    finally:
        if running:
            gc.enable()
