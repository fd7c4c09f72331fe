"""The last of several largest places is an answer as well as the first.

family: I
problem: i_argmax_ties
expect: correct
device: cpu, cuda
"""

import torch


def i_argmax_ties(x):
    return x.shape[-1] - 1 - torch.argmax(x.flip(-1), dim=-1)
