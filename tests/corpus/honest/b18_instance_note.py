"""A plain tensor with a note on it: an attribute that replaces nothing.

family: B18
problem: softmax
expect: correct
"""

import torch


def softmax(x):
    out = torch.softmax(x, dim=-1)
    out.made_by = "softmax"
    return out
