"""A module loops when new weights are loaded.

family: H
problem: h_linear_module
counterpart: h_slow_constructor.py
expect: failed
reason: timeout
max_s: 30
settings: eval.limits.load_s=4
device: cpu, cuda
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = nn.Linear(width, width)

    def load_state_dict(self, *args, **kwargs):
        while True:
            pass

    def _load_from_state_dict(self, *args, **kwargs):
        while True:
            pass

    def forward(self, x):
        return self.layer(x)
