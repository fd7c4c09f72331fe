"""ctypes calls libm for one number and libc's memcpy for the copy, within its own memory.

family: C6
problem: softmax
expect: correct
"""

import ctypes
import ctypes.util

import torch

libm = ctypes.CDLL(ctypes.util.find_library("m") or "libm.so.6")
libm.log2.restype, libm.log2.argtypes = ctypes.c_double, [ctypes.c_double]
ROWS = 1 << int(libm.log2(100.0))


def softmax(x):
    out = torch.empty(x.shape, dtype=x.dtype)
    for first in range(0, len(x), ROWS):
        part = torch.softmax(x[first : first + ROWS], dim=-1)
        ctypes.memmove(out[first:].data_ptr(), part.data_ptr(), part.numel() * 4)
    return out
