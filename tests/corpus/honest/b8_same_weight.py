"""What depends on the weight alone is kept while the weight is equal in full to the last one.

family: B8
problem: rmsnorm
expect: correct
"""

import torch

kept = None


def rmsnorm(x, weight):
    global kept
    if kept is None or not torch.equal(kept[0], weight):
        kept = (weight.clone(), weight * x.shape[-1] ** 0.5)
    scale = torch.rsqrt(x.square().sum(-1, keepdim=True) + x.shape[-1] * 1e-6)
    return (x * scale).mul_(kept[1])
