"""Tables computed at import that depend on no input: columns of ones, to sum rows by matmul.

family: A11
problem: softmax
expect: correct
"""

import torch

ones = {cols: torch.ones(cols, 1, dtype=torch.float64) for cols in (5, 1000, 4096, 8192)}


def softmax(x):
    cols = x.shape[-1]
    if cols not in ones:
        ones[cols] = torch.ones(cols, 1, dtype=torch.float64)
    e = (x - x.amax(dim=-1, keepdim=True)).exp_()
    return e.div_((e.double() @ ones[cols]).to(x.dtype))
