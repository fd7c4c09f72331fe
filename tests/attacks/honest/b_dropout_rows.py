"""The norm is a square root of a sum, and the random stream is the reference's.

family: B
problem: dropout_rows
expect: correct
device: cpu, cuda
"""

import torch


def dropped(x):
    return torch.nn.functional.dropout(x * torch.rsqrt((x * x).sum(-1, keepdim=True)), 0.5)
