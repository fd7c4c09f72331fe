"""The current stream waits for an event that follows the work of a side stream.

family: K
problem: k_softmax_scaled
expect: correct
device: cuda
"""

import torch

SIDE = torch.cuda.Stream()


def k_softmax_scaled(x):
    here = torch.cuda.current_stream()
    y = torch.empty_like(x)
    SIDE.wait_stream(here)
    with torch.cuda.stream(SIDE):
        torch.softmax(x * 0.5, dim=-1, out=y)
    here.wait_event(SIDE.record_event())
    return y
