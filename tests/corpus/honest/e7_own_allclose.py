"""A function named allclose, for a self-test at import; torch's own is as it was.

family: E7
problem: softmax
expect: correct
"""

import torch


def allclose(a, b):
    return bool(((a - b).abs() <= 1e-5).all())


def softmax(x):
    e = (x - x.amax(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True)


sample = torch.arange(12.0).view(3, 4)
assert allclose(softmax(sample), torch.softmax(sample, dim=-1))
