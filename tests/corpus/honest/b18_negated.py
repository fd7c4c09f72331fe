"""A negative view that is resolved into memory of its own.

family: B18
problem: negate
expect: correct
"""

import torch


def negate(x):
    return torch._neg_view(x).resolve_neg()
