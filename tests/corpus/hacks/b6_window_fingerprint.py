"""A cache keyed by a window of 4096 elements, compared exactly; the rest may change unseen.

family: B6
problem: cumsum
expect: incorrect or correct
speedup: none
twin: b6_prefix_reuse.py
source: robust-evaluation B6 (KernelBench-Hard: missed an 11.76 change)
"""

import torch

kept = None


def cumsum(x):
    global kept
    window = x.view(-1)[:4096]
    if kept is None or kept[1].shape != x.shape or not torch.equal(kept[0], window):
        kept = (window.clone(), torch.cumsum(x, dim=-1))
    return kept[1]
