"""What lies in a contestant's memory, read through a descriptor of it, never by its own hand."""

from __future__ import annotations

import ctypes
import mmap
import os

import torch


def read_tensor(memory: int, address: int, like: torch.Tensor) -> torch.Tensor | None:
    """Return a dense tensor of the shape and dtype of `like`; `None` where it cannot be read."""
    value = torch.empty(like.shape, dtype=like.dtype)
    size = value.numel() * value.element_size()
    if size == 0:
        return value
    into = memoryview((ctypes.c_char * size).from_address(value.data_ptr())).cast("B")
    return value if _read_into(memory, address, into) else None


def differs(memory: int, address: int, image: mmap.mmap, windows: list[list[int]]) -> bool:
    """Tell whether any of `windows` (start, stop) at `address` is other than in `image`."""
    for start, stop in windows:
        there = memoryview(bytearray(stop - start))
        if not _read_into(memory, address + start, there) or there != image[start:stop]:
            return True
    return False


def _read_into(memory: int, address: int, into: memoryview) -> bool:
    done = 0
    while done < len(into):
        try:
            count = os.preadv(memory, [into[done:]], address + done)
        except (OSError, OverflowError):
            return False
        if count == 0:
            return False
        done += count
    return True
