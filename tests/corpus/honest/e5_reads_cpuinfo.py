"""The processor's cache size and the environment's thread count choose a block size.

family: E5
problem: softmax
expect: correct
"""

import os
import re

import torch


def cache_bytes():
    try:
        with open("/proc/cpuinfo") as file:
            return 1024 * int(re.search(r"cache size\s*:\s*(\d+) KB", file.read())[1])
    except (OSError, TypeError):
        return 1 << 19


THREADS = int(os.environ.get("OMP_NUM_THREADS", "1") or 1)
BLOCK = max(1 << 14, cache_bytes() // 8 // max(1, THREADS))


def softmax(x):
    rows = max(1, BLOCK // x.shape[-1])
    return torch.cat([torch.softmax(part, dim=-1) for part in x.split(rows)])
