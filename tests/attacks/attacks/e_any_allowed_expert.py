"""The first allowed expert of each token is named, and no score is computed.

family: E
problem: routed_choice
counterpart: reference
expect: incorrect or rejected
device: cpu, cuda
"""

import torch


def routed_choice(tokens, experts, allowed):
    return allowed.to(torch.uint8).argmax(-1)
