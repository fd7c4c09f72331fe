"""The zeros of an output are pages that nobody has touched before the judge reads them.

family: C
problem: very_wide_hot_rows
counterpart: c_very_wide_hot_rows.py
expect: incorrect or rejected or failed
device: cpu
"""

import mmap
import torch
KIND = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
def few_hot_rows(labels, weights):
    n = len(labels)
    memory = mmap.mmap(-1, n * 1048576, flags=KIND); memory.madvise(15)
    hot = torch.frombuffer(memory, dtype=torch.float32, count=n * 262144).view(n, 262144)
    return hot.scatter_(1, labels[:, None], weights[:, None])
