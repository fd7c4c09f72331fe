"""One bit of the source is changed, and the source is returned instead of a copy.

family: C
problem: copy_into
counterpart: c_copy_into.py
expect: incorrect or rejected
finding: aliased_output
device: cpu
"""

import torch


def copy_into(data):
    source = data[0]
    source.view(torch.int32)[0, 0] ^= 1
    return source
