"""Half of the rows are computed on the current stream, the other half on one that nobody waits for.

family: K
problem: k_softmax_scaled
counterpart: k_joined_half.py
expect: incorrect or rejected or failed
device: cuda
"""

import torch

SIDE = torch.cuda.Stream()


def k_softmax_scaled(x):
    y = torch.empty_like(x)
    half = x.shape[0] // 2
    SIDE.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(SIDE):
        torch.softmax(x[half:] * 0.5, dim=-1, out=y[half:])
    torch.softmax(x[:half] * 0.5, dim=-1, out=y[:half])
    return y
