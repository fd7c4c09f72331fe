"""Rows are multiplied by a reciprocal, which moves a few elements to the next float8.

family: I
problem: i_float8_rows
expect: correct
device: cpu, cuda
"""

import torch


def i_float8_rows(x):
    most = torch.maximum(x.amax(dim=-1), -x.amin(dim=-1)).float()[:, None]
    factor = 448 / most
    return (x.float() * factor).to(torch.float8_e4m3fn), most * (1 / 448)
