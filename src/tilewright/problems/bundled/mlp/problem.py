"""Linear, exact GELU, linear: the feed-forward block of a transformer, as a KernelBench module."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Widens, applies the GELU, and narrows again."""

    def __init__(self, features, hidden):
        super().__init__()
        self.up = nn.Linear(features, hidden)
        self.down = nn.Linear(hidden, features)

    def forward(self, x):
        return self.down(F.gelu(self.up(x)))


batch, features, hidden = 200, 256, 768


def get_inputs():
    return [torch.randn(batch, features)]


def get_init_inputs():
    return [features, hidden]


def BYTES(case):
    return 4 * (2 * batch * features + 2 * features * hidden + features + hidden)


def FLOPS(case):
    return 4 * batch * features * hidden
