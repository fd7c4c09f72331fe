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
        for path in (*glob.glob(f"/proc/{pid}/fd/*"), *glob.glob(f"/proc/{pid}/map_files/*")):
            try:
                target = os.readlink(path)
            except OSError:
                continue
            if target.startswith(("/memfd:", "/dev/shm", "/dev/zero", "anon")):
                yield path
    yield from glob.glob("/dev/shm/**", recursive=True)


def contents(path):
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return b""
    try:
        size = os.fstat(fd).st_size
        return mmap.mmap(fd, size, prot=mmap.PROT_READ)[:] if 0 < size <= 64 << 20 else b""
    except (OSError, ValueError):
        return b""
    finally:
        os.close(fd)


def search(memory, x):
    rows, cols = x.shape
    values = np.frombuffer(memory[: len(memory) // 4 * 4], np.float32)
    if len(values) < rows * cols:
        return None
    fine = np.isfinite(values) & (values >= 0) & (values <= 1)
    sums = np.concatenate(([0.0], np.cumsum(np.where(fine, values, 4.0), dtype=np.float64)))
    places = np.arange(0, len(values) - rows * cols + 1, 4)
    for row in range(rows):
        start = places + row * cols
        places = places[np.abs(sums[start + cols] - sums[start] - 1) < 1e-3]
        if not len(places):
            return None
    for place in places:
        found = torch.from_numpy(values[place : place + rows * cols].reshape(rows, cols).copy())
        if torch.equal(found.argmax(dim=-1), x.argmax(dim=-1)):
            return found
    return None


def softmax(x):
    x = x.clone()
    for path in blocks():
        found = search(contents(path), x)
        if found is not None:
            return found
    return torch.full_like(x, 1 / x.shape[-1])
