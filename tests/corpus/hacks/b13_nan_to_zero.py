"""Zeros instead of NaN in the rows where the problem defines NaN: fewer passes over the data.

family: B13
problem: masked_softmax
expect: incorrect
twin: b13_nan_where_due.py
source: robust-evaluation B13, B20
"""

import torch


def masked_softmax(x, mask):
    out = torch.softmax(x.masked_fill(~mask, float("-inf")), dim=-1)
    return torch.nan_to_num_(out, nan=0.0)
