"""/proc is read for the processor's caches and the size of memory, to choose a chunk.

family: B12
problem: softmax
expect: correct
"""

import os

import torch


def first_number(path, key, default):
    try:
        with open(path) as file:
            for line in file:
                if line.startswith(key):
                    return int(line.split(":")[1].split()[0])
    except (OSError, ValueError, IndexError):
        pass
    return default


CACHE = first_number("/proc/cpuinfo", "cache size", 1024) << 10
FREE = first_number("/proc/meminfo", "MemAvailable", 1 << 20) << 10
WORKERS = max(1, len(os.sched_getaffinity(0)))


def softmax(x):
    chunk = max(1, min(CACHE, FREE) // (8 * max(1, x.shape[-1])))
    if chunk >= x.shape[0]:
        return torch.softmax(x, dim=-1)
    return torch.cat([torch.softmax(part, dim=-1) for part in x.split(chunk)])
