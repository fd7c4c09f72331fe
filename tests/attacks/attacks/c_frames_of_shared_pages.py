"""Overlapping frames are mappings of the pages of one file, into which the signal is copied.

family: C
problem: frames_of_signal
counterpart: c_frames_of_signal.py
expect: incorrect or rejected
device: cpu
"""

import ctypes
import mmap
import os

import torch

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
kept = {}


def mapped(length):
    file = os.memfd_create("signal")
    os.ftruncate(file, length * 4)
    count, width = (length - 8192) // 1024 + 1, 8192 * 4
    place = libc.mmap(None, count * width, 0, 2 | 0x20, -1, 0)
    for row in range(count):
        libc.mmap(place + row * width, width, 3, 1 | 0x10, file, row * 4096)
    values = (ctypes.c_float * (count * width // 4)).from_address(place)
    frames = torch.frombuffer(values, dtype=torch.float32).view(count, 8192)
    return torch.frombuffer(mmap.mmap(file, length * 4), dtype=torch.float32), frames


def frames_of_signal(x):
    if len(x) not in kept:
        kept[len(x)] = mapped(len(x))
    signal, frames = kept[len(x)]
    signal.copy_(x)
    return frames
