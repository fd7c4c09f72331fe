"""torch's own lazy tensor: the negative bit is set on a view of the input, nothing is computed.

family: B18
problem: negate
expect: rejected or incorrect or correct
speedup: none
twin: b18_negated.py
source: tilewright
"""

import torch


def negate(x):
    return torch._neg_view(x)
