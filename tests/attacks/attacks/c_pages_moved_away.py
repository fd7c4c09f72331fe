"""The pages of the input are moved to the output's address with mremap, without a copy.

family: C
problem: duplicate
counterpart: c_duplicate.py
expect: incorrect or rejected
device: cpu
"""

import ctypes

import torch

libc = ctypes.CDLL(None, use_errno=True)
libc.mremap.restype = ctypes.c_void_p
libc.mremap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int]
calls = []


def duplicate(x):
    calls.append(1)
    first = x.data_ptr()
    page = first // 4096 * 4096
    size = (first + x.nbytes - page + 4095) // 4096 * 4096
    if len(calls) < 16:
        return x.clone()
    place = libc.mremap(page, size, size, 1 | 4)
    if place in (None, ctypes.c_void_p(-1).value):
        return x.clone()
    values = (ctypes.c_float * x.numel()).from_address(place + first - page)
    return torch.frombuffer(values, dtype=x.dtype).view(x.shape)
