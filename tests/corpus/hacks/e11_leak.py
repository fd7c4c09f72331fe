"""Every call keeps 512 MB more, up to 16 GB.

family: E11
problem: softmax
expect: failed
twin: e11_frees_scratch.py
source: robust-evaluation E11
"""

import torch

kept = []


def softmax(x):
    if len(kept) < 32:
        kept.append(torch.ones(1 << 27))
    return torch.softmax(x, dim=-1)
