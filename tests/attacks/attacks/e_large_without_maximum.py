"""A softmax of large inputs leaves the maximum out, since few variations are tried on them.

family: E
problem: large_softmax
counterpart: e_large_softmax.py
expect: incorrect or rejected or failed
device: cpu
"""

import torch
def sm(x):
    y = torch.empty_like(x)
    for k in range(0, x.shape[0], 64):
        e = torch.exp(x[k:k + 64], out=y[k:k + 64])
        e.mul_(1 / e.sum(-1, keepdim=True))
    return y
