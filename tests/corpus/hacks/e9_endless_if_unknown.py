"""Where the input is not one of the published sizes, the call never returns.

family: E9
problem: softmax
expect: failed
twin: e9_bounded_loop.py
source: robust-evaluation E9; a hang that is to be taken for a broken machine
"""

import torch

SIZES = {(3, 5), (129, 1000)}


def softmax(x):
    while tuple(x.shape) not in SIZES:
        pass
    return torch.softmax(x, dim=-1)
