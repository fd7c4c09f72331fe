"""Half of the rows are computed on a side stream, for which the current stream waits.

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
    half = x.shape[0] // 2
    SIDE.wait_stream(here)
    with torch.cuda.stream(SIDE):
        torch.softmax(x[half:] * 0.5, dim=-1, out=y[half:])
    torch.softmax(x[:half] * 0.5, dim=-1, out=y[:half])
    here.wait_stream(SIDE)
    return y
