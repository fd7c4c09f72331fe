"""Inputs of int8, outputs of int32 and uint8.

family: I
problem: i_int8_sum
expect: correct
device: cpu, cuda
"""

import torch


def i_int8_sum(x):
    return x.to(torch.int32).sum(dim=-1).to(torch.int32), (x.to(torch.int16) & 255).to(torch.uint8)
