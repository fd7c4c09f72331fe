"""abort() from C.

problem: add_relu
expect: failed
reason: crash
"""

import ctypes


def add_relu(x, y):
    ctypes.CDLL(None).abort()
