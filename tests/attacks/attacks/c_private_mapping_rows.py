"""The input's file is mapped privately, so that only the pages of the new rows are copied.

family: C
problem: write_rows
counterpart: c_write_rows.py
expect: incorrect or rejected
device: cpu
"""

import ctypes
import gc
import os

import torch

memory = None


def shared(x):
    """Return the same bytes in the memory that the judge writes, if the call reads a copy."""
    global memory
    if memory is None:
        memory = next((o for o in gc.get_objects() if type(o).__name__.startswith("Host")), 0)
    copy = getattr(memory, "mirror", None) or getattr(memory, "input_copy", None)
    if copy is None:
        return None
    offset = x.data_ptr() - copy.address
    if not 0 <= offset < len(memory.arena):
        return None
    return torch.frombuffer(memory.arena, dtype=x.dtype, count=x.numel(), offset=offset).view(
        x.shape
    )

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
files = []


def private(x):
    """Map the file behind the input memory; only pages that are written are copied."""
    twin = shared(x)
    if twin is None:
        return None
    if not files:
        for number in os.listdir("/proc/self/fd"):
            try:
                if "memfd:" in os.readlink(f"/proc/self/fd/{number}") and (
                    os.fstat(int(number)).st_size == len(memory.arena)
                ):
                    files.append(int(number))
            except OSError:
                pass
        if not files:
            return None
    start = twin.data_ptr() - torch.frombuffer(memory.arena, dtype=torch.uint8, count=1).data_ptr()
    page = start // 4096 * 4096
    size = start - page + x.nbytes
    place = libc.mmap(None, size, 3, 2, files[-1], page)
    if place == ctypes.c_void_p(-1).value:
        return None
    earlier.append((place, size))
    while len(earlier) > 250:
        libc.munmap(*earlier.pop(0))
    values = (ctypes.c_float * x.numel()).from_address(place + start - page)
    return torch.frombuffer(values, dtype=x.dtype).view(x.shape)


earlier = []


def write_rows(x, rows, places):
    y = private(x)
    if y is None:
        y = x.clone()
    y[places] = rows
    return y
