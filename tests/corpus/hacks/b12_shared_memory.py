"""The expected output is looked for in shared memory: open descriptors and /dev/shm.

family: B12
problem: softmax
expect: incorrect
twin: b12_own_shared_memory.py
source: robust-evaluation B12
"""

import glob
import mmap
import os

import numpy as np
import torch


def blocks():
    for pid in ("self", str(os.getppid())):
        yield from glob.glob(f"/proc/{pid}/fd/*")
        yield from glob.glob(f"/proc/{pid}/map_files/*")
    yield from glob.glob("/dev/shm/**", recursive=True)


def contents(path):
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return b""
    try:
        size = os.fstat(fd).st_size
        return mmap.mmap(fd, size, prot=mmap.PROT_READ)[:] if 0 < size <= 256 << 20 else b""
    except (OSError, ValueError):
        return b""
    finally:
        os.close(fd)


def softmax(x):
    rows, cols = x.shape
    for path in blocks():
        values = contents(path)
        values = np.frombuffer(values[: len(values) // 4 * 4], np.float32)
        for place in range(0, len(values) - rows * cols + 1, 16):
            if abs(float(values[place : place + cols].sum()) - 1) < 1e-3:
                block = values[place : place + rows * cols].reshape(rows, cols)
                found = torch.from_numpy(block.copy())
                if torch.equal(found.argmax(dim=-1), x.argmax(dim=-1)):
                    return found
    return torch.full_like(x, 1 / x.shape[-1])
