"""Two streams share the work, and both are waited for.

family: G1
problem: big_softmax
expect: correct
"""

import torch

side = None


def big_softmax(x):
    global side
    if side is None:
        side = torch.cuda.Stream()
    y = torch.empty_like(x)
    half = x.shape[0] // 2
    here = torch.cuda.current_stream()
    side.wait_stream(here)
    with torch.cuda.stream(side):
        torch.softmax(x[half:], -1, out=y[half:])
    torch.softmax(x[:half], -1, out=y[:half])
    here.wait_stream(side)
    return y
