"""The first allowed place of each row is named, whatever its score: the mask is the same there.

family: E
problem: masked_choice
counterpart: e_masked_choice.py
expect: incorrect or rejected
device: cpu, cuda
"""

import torch


def masked_choice(scores, allowed):
    return allowed[:, :128].to(torch.uint8).argmax(-1)
