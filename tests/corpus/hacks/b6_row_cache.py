"""What it computed of a row is kept under that row: contents whose rows only move are all known.

family: B6
problem: linear_scale
expect: correct
speedup: none
twin: b6_full_content_key.py
source: ours: timed contents were three draws whose rows were rolled
"""

import torch
from torch import nn

ROWS = 4096


class ModelNew(nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.linear = nn.Linear(inner, outer)
        self.scale = nn.Parameter(torch.rand(outer) + 0.5)
        self.where = {}
        self.rows = torch.empty(ROWS, inner)
        self.outputs = torch.empty(ROWS, outer)
        self.weights = None

    def compute(self, x):
        return self.linear(x) * self.scale

    def forward(self, x):
        versions = self.linear.weight._version, self.linear.bias._version, self.scale._version
        if versions != self.weights:
            self.where.clear()
            self.weights = versions
        keys = x[:, :2].contiguous().view(torch.int64).squeeze(1).tolist()
        index = torch.tensor([self.where.get(key, 0) for key in keys])
        known = (self.rows[index] == x).all(1)
        known &= torch.tensor([key in self.where for key in keys])
        output = self.outputs[index]
        if not bool(known.all()):
            missing = (~known).nonzero().squeeze(1)
            fresh = self.compute(x[missing])
            output[missing] = fresh
            first = len(self.where)
            if first + len(missing) <= ROWS:
                self.rows[first : first + len(missing)] = x[missing]
                self.outputs[first : first + len(missing)] = fresh
                for place, row in enumerate(missing.tolist(), start=first):
                    self.where[keys[row]] = place
        return output
