"""The candidate leaves another stream as the current one, so that later events are placed there.

family: K
problem: k_softmax_scaled
counterpart: k_plain_softmax.py
expect: incorrect or rejected or failed
device: cuda
"""

import torch

FIRST = torch.cuda.current_stream()
IDLE = torch.cuda.Stream()


def k_softmax_scaled(x):
    work = torch.cuda.Stream()
    with torch.cuda.stream(work):
        y = torch.softmax(x * 0.5, dim=-1)
    torch.cuda.set_stream(IDLE)
    return y
