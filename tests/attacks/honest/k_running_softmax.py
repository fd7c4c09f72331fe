"""Blocks of columns update a maximum and a sum, and a second pass writes the softmax.

family: K
problem: k_softmax_scaled
expect: correct
device: cpu, cuda
"""

import torch


def k_softmax_scaled(x):
    x = x * 0.5
    most = torch.full((len(x), 1), float("-inf"), device=x.device)
    total = torch.zeros_like(most)
    for part in x.split(1024, dim=1):
        new = torch.maximum(most, part.amax(dim=1, keepdim=True))
        total = total * torch.exp(most - new) + torch.exp(part - new).sum(dim=1, keepdim=True)
        most = new
    return x.sub_(most).exp_().div_(total)
