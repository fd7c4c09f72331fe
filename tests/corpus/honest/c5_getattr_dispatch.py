"""The operator is looked up by a name put together from its parts, and called as it is.

family: C5
problem: softmax
expect: correct
"""

import torch

PREFIX, KIND = "soft", "max"
operator = getattr(torch, PREFIX + KIND)


def softmax(x):
    return operator(x, dim=-1)
