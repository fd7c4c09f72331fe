"""A pool of threads starts in the first call, and a handler at exit shuts it down.

family: H
problem: h_scaled_sum
expect: correct
device: cpu, cuda
"""

import atexit
import functools
from concurrent.futures import ThreadPoolExecutor

import torch


@functools.cache
def pool():
    made = ThreadPoolExecutor(2, thread_name_prefix="halves")
    atexit.register(made.shutdown, wait=True, cancel_futures=True)
    return made


def h_scaled_sum(x, y):
    out = torch.empty_like(x)
    jobs = [
        pool().submit(torch.add, b, a, alpha=2, out=c)
        for a, b, c in zip(x.tensor_split(2), y.tensor_split(2), out.tensor_split(2))
    ]
    for job in jobs:
        job.result()
    return out
