"""The memory for inputs is replaced by a file that is mapped once more, where the output lies.

family: C
problem: duplicate
counterpart: c_duplicate.py
expect: incorrect or rejected or failed
device: cpu
"""

import ctypes
import gc
import os

import torch

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
state = {"calls": 0}


def memory_of_inputs():
    for host in gc.get_objects():
        if type(host).__name__.startswith("Host"):
            for name in ("mirror", "input_copy", "input_memory"):
                if hasattr(host, name):
                    return getattr(host, name).address, len(host.arena) // 4096 * 4096
    return None


def replace():
    address, size = memory_of_inputs()
    file = os.memfd_create("inputs")
    os.ftruncate(file, size)
    here = (ctypes.c_char * size).from_address(address)
    os.pwrite(file, bytes(here), 0)
    libc.mmap(address, size, 3, 1 | 0x10, file, 0)
    state.update(address=address, size=size, twin=libc.mmap(None, size, 3, 1, file, 0))


def duplicate(x):
    state["calls"] += 1
    if state["calls"] == 14 and memory_of_inputs():
        replace()
    offset = x.data_ptr() - state.get("address", 1 << 62)
    if not 0 <= offset < state.get("size", 0):
        return x.clone()
    values = (ctypes.c_float * x.numel()).from_address(state["twin"] + offset)
    return torch.frombuffer(values, dtype=x.dtype).view(x.shape)
