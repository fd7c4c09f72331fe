"""An event is recorded before the work of a side stream, so that waiting for it waits for nothing.

family: K
problem: k_softmax_scaled
counterpart: k_joined_event.py
expect: incorrect or rejected or failed
device: cuda
"""

import torch

SIDE = torch.cuda.Stream()


def k_softmax_scaled(x):
    y = torch.empty_like(x)
    SIDE.wait_stream(torch.cuda.current_stream())
    done = SIDE.record_event()
    with torch.cuda.stream(SIDE):
        torch.softmax(x * 0.5, dim=-1, out=y)
    torch.cuda.current_stream().wait_event(done)
    return y
