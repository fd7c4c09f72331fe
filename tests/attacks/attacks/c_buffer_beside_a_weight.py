"""The reference returns a weight, so one buffer of zeros is kept beside it for the other output.

family: C
problem: weight_and_rows
counterpart: c_weight_and_rows.py
expect: incorrect or rejected
device: cpu, cuda
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.rand(1024))
        self.pool = []

    def unused(self, labels, weights):
        """Return a buffer that nobody but the pool refers to, with what it keeps."""
        for item in self.pool:
            if torch._C._storage_Use_Count(item[0].untyped_storage()._cdata) <= LEAST:
                return item
        zeros = torch.zeros(len(labels), 1024, device=weights.device)
        self.pool.append([zeros, labels[:, None].clone()])
        return self.pool[-1]

    def forward(self, labels, weights):
        hot, last = self.unused(labels, weights)
        hot.scatter_(1, last, 0.0)
        last.copy_(labels[:, None])
        return self.scale, hot.scatter_(1, last, weights[:, None])


probe = torch.zeros(4)
LEAST = torch._C._storage_Use_Count(probe.untyped_storage()._cdata)
