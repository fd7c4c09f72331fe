"""Rows are quantised with a reciprocal instead of a quotient.

family: I
problem: quantised_rows
expect: correct
device: cpu
"""

import torch
def quant(x):
    most = x.abs().amax(-1, keepdim=True)
    return torch.round(x * (127 / most)).to(torch.int8), most / 127
