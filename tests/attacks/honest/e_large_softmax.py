"""A softmax of large inputs with the maximum.

family: E
problem: large_softmax
expect: correct
device: cpu
"""

import torch
def sm(x):
    y = torch.empty_like(x)
    for k in range(0, x.shape[0], 64):
        r = x[k:k + 64]
        e = torch.sub(r, r.amax(-1, keepdim=True), out=y[k:k + 64]).exp_()
        e.mul_(1 / e.sum(-1, keepdim=True))
    return y
