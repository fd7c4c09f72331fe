"""A read of address 0.

problem: add_relu
expect: failed
reason: crash
"""

import ctypes


def add_relu(x, y):
    return ctypes.string_at(0)
