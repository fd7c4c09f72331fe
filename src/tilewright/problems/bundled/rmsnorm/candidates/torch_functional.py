"""The library's own fused call."""

import torch.nn.functional as F


def rmsnorm(x, weight):
    return F.rms_norm(x, (x.shape[-1],), weight=weight, eps=1e-6)
