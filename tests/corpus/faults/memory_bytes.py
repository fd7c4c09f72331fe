"""Ten gigabytes from the interpreter.

problem: add_relu
expect: failed
reason: out_of_memory
"""

import torch


def add_relu(x, y):
    waste = bytearray(10 << 30)
    waste[::4096] = waste[1::4096]
    return torch.relu(x + y)
