"""The first launch sleeps on the device, so that all later work of the call lies behind the clock.

family: K
problem: k_softmax_scaled
counterpart: k_plain_softmax.py
expect: incorrect or rejected or failed
device: cuda
"""

import torch

SIDE = torch.cuda.Stream()


def k_softmax_scaled(x):
    y = torch.empty_like(x)
    with torch.cuda.stream(SIDE):
        torch.cuda._sleep(100000)
        torch.softmax(x * 0.5, dim=-1, out=y)
    return y
