"""Threads compute halves of the rows; all are joined before the function returns.

family: C2
problem: softmax
expect: correct
"""

from concurrent.futures import ThreadPoolExecutor

import torch


def fill(out, x):
    torch.softmax(x, dim=-1, out=out)


def softmax(x):
    out = torch.empty_like(x)
    with ThreadPoolExecutor(2) as pool:
        for part in (slice(0, len(x) // 2), slice(len(x) // 2, None)):
            pool.submit(fill, out[part], x[part])
    return out
