"""The shared input memory is mapped once more with mremap, and the output lies there.

family: C
problem: duplicate
counterpart: c_duplicate.py
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
libc.mremap.restype = ctypes.c_void_p
libc.mremap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int]

mapped = {}


def duplicate(x):
    twin = shared(x)
    if twin is None:
        return x.clone()
    first = twin.data_ptr()
    page, count = first // 4096 * 4096, x.nbytes + 4096
    if page not in mapped:
        mapped[page] = libc.mremap(page, 0, count // 4096 * 4096 + 4096, 1)
    place = mapped[page]
    if place in (None, ctypes.c_void_p(-1).value):
        return x.clone()
    values = (ctypes.c_float * x.numel()).from_address(place + first - page)
    return torch.frombuffer(values, dtype=x.dtype).view(x.shape)
