"""Segments of System V memory are filled and detached, so that only their ids remain.

family: H
problem: h_scaled_sum
counterpart: h_small_memfd.py
expect: failed
max_s: 60
settings: eval.limits.memory_bytes=1073741824
device: cpu, cuda
"""

import ctypes

import torch

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.shmat.restype = ctypes.c_void_p
LIBC.shmat.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_int]
LIBC.shmget.argtypes = [ctypes.c_int, ctypes.c_size_t, ctypes.c_int]
LIBC.shmdt.argtypes = [ctypes.c_void_p]
KEPT = []


def h_scaled_sum(x, y):
    if not KEPT:
        for _ in range(8):
            segment = LIBC.shmget(0, 1 << 28, 0o1600)
            if segment < 0:
                raise OSError(ctypes.get_errno(), "no segment")
            place = LIBC.shmat(segment, None, 0)
            ctypes.memset(place, 1, 1 << 28)
            LIBC.shmdt(place)
            KEPT.append(segment)
    return torch.add(y, x, alpha=2)
