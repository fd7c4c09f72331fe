"""Overlapping frames are mappings of the pages of the input's file.

family: C
problem: frames_of_signal
counterpart: c_frames_of_signal.py
expect: incorrect or rejected
device: cpu
"""

import ctypes, gc, os

import torch

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
kept, files, memory = {}, [], []


def frames_of_signal(x):
    if not memory:
        memory.append(next((o for o in gc.get_objects() if type(o).__name__.startswith("Host")), 0))
    copy = getattr(memory[0], "mirror", None) or getattr(memory[0], "input_copy", None)
    offset = x.data_ptr() - copy.address if copy is not None else -1
    if offset < 0 or offset % 4096 or offset >= len(memory[0].arena):
        return x.unfold(0, 8192, 1024).contiguous()
    if offset not in kept:
        for number in os.listdir("/proc/self/fd"):
            try:
                if "memfd:" in os.readlink(f"/proc/self/fd/{number}"):
                    if os.fstat(int(number)).st_size == len(memory[0].arena):
                        files.append(int(number))
            except OSError:
                pass
        count, width = (len(x) - 8192) // 1024 + 1, 8192 * 4
        place = libc.mmap(None, count * width, 0, 2 | 0x20, -1, 0)
        for row in range(count):
            libc.mmap(place + row * width, width, 3, 1 | 0x10, files[-1], offset + row * 4096)
        values = (ctypes.c_float * (count * width // 4)).from_address(place)
        kept[offset] = torch.frombuffer(values, dtype=torch.float32).view(count, 8192)
    return kept[offset]
