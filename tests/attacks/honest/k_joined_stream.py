"""A side stream waits for the current one, which waits for it again.

family: K
problem: k_softmax_scaled
expect: correct
device: cuda
"""

import torch

SIDE = torch.cuda.Stream()


def k_softmax_scaled(x):
    here = torch.cuda.current_stream()
    SIDE.wait_stream(here)
    with torch.cuda.stream(SIDE):
        y = torch.softmax(x * 0.5, dim=-1)
    here.wait_stream(SIDE)
    y.record_stream(here)
    return y
