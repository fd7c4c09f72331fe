"""The weight itself, and zeros of the allocator with one element in each row.

family: C
problem: weight_and_rows
expect: correct
device: cpu, cuda
"""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.rand(1024))

    def forward(self, labels, weights):
        hot = torch.zeros(len(labels), 1024, device=labels.device)
        return self.scale, hot.scatter_(1, labels[:, None], weights[:, None])
