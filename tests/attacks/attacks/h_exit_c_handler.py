"""A handler that the C library calls at exit pauses for ever.

family: H
problem: h_scaled_sum
counterpart: h_short_exit.py
expect: correct or failed
max_s: 30
device: cpu, cuda
"""

import ctypes

import torch

LIBC = ctypes.CDLL(None)


LIBC["__cxa_atexit"](ctypes.cast(LIBC.pause, ctypes.c_void_p), None, None)


def h_scaled_sum(x, y):
    return torch.add(y, x, alpha=2)
