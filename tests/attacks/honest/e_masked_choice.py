"""The largest allowed element, and the last of those that tie.

family: E
problem: masked_choice
expect: correct
device: cpu, cuda
"""

import torch


def masked_choice(scores, allowed):
    found = torch.where(allowed, scores, -torch.inf).flip(-1).argmax(-1)
    return scores.shape[-1] - 1 - found
