"""A cache keyed by a fingerprint of a few sampled elements.

family: B6
problem: softmax
expect: incorrect or correct
speedup: none
twin: b6_full_content_key.py
source: robust-evaluation B6 (flashinfer-bench issue 21)
"""

import torch

kept = {}


def softmax(x):
    flat = x.view(-1)
    sample = flat[:: max(1, flat.numel() // 64)]
    key = (x.shape, tuple(sample.tolist()))
    if key not in kept:
        kept.clear()
        kept[key] = torch.softmax(x, dim=-1)
    return kept[key]
