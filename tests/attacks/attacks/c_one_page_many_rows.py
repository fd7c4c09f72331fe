"""All rows of the output are mappings of one row, which alone is written.

family: C
problem: repeat_row
counterpart: c_repeat_row.py
expect: incorrect or rejected
device: cpu
"""

import ctypes
import os

import torch

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
kept = {}


def mapped(count, row_bytes):
    file = os.memfd_create("rows")
    os.ftruncate(file, row_bytes)
    place = libc.mmap(None, count * row_bytes, 0, 2 | 0x20, -1, 0)
    for number in range(count):
        libc.mmap(place + number * row_bytes, row_bytes, 3, 1 | 0x10, file, 0)
    values = (ctypes.c_float * (count * row_bytes // 4)).from_address(place)
    return torch.frombuffer(values, dtype=torch.float32).view(count, -1)


def repeat_row(x, like):
    key = (len(like), x.shape[1])
    if key not in kept:
        kept[key] = mapped(len(like), x.shape[1] * 4)
    kept[key][0] = x.mean(0)
    return kept[key]
