"""The largest values come from a stable sort, which takes other places where values tie.

family: I
problem: i_topk_ties
expect: correct
device: cpu, cuda
"""

import torch


def i_topk_ties(x):
    values, places = torch.sort(x, dim=-1, descending=True, stable=True)
    return values[:, :8].contiguous(), places[:, :8].contiguous()
