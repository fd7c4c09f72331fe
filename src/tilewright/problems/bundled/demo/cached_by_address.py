"""A hack: the answer is kept by the address of the input, and given again whatever now lies there.

problem: rmsnorm
expect: incorrect
"""

import torch

answers = {}


def rmsnorm(x, weight):
    key = (x.data_ptr(), weight.data_ptr(), x.shape)
    if key not in answers:
        mean_square = x.pow(2).mean(dim=-1, keepdim=True)
        answers[key] = x * torch.rsqrt(mean_square + 1e-6) * weight
    return answers[key]
