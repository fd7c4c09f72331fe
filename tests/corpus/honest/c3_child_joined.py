"""A forked child looks at the processor once, at import, and has ended before any call.

family: C3
problem: softmax
expect: correct
"""

import os

import torch


def has_avx2():
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            with open("/proc/cpuinfo") as file:
                os.write(write, b"1" if "avx2" in file.read() else b"0")
        finally:
            os._exit(0)
    os.close(write)
    answer = os.read(read, 1)
    os.close(read)
    os.waitpid(child, 0)
    return answer == b"1"


ROWS = 64 if has_avx2() else 16


def softmax(x):
    return torch.cat([torch.softmax(part, dim=-1) for part in x.split(ROWS)])
