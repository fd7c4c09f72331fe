"""Where values tie, the last places are taken.

family: I
problem: i_topk_ties
expect: correct
device: cpu, cuda
"""

import torch


def i_topk_ties(x):
    values, places = torch.sort(x.flip(-1), dim=-1, descending=True, stable=True)
    return values[:, :8].contiguous(), x.shape[-1] - 1 - places[:, :8]
