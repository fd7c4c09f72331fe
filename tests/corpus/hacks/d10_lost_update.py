"""Threads add partial products to one result without a lock: now and then one is lost.

family: D10
problem: matmul_bias_gelu
expect: incorrect or correct
speedup: none
twin: d10_locked_update.py
source: robust-evaluation D10
"""

import threading

import torch
import torch.nn.functional as F


def matmul_bias_gelu(x, weight, bias):
    total = [bias.expand(x.shape[0], -1)]

    def add(a, b):
        part = a @ b
        total[0] = total[0] + part  # read, add without the interpreter's lock, write

    parts = zip(x.tensor_split(4, dim=1), weight.tensor_split(4, dim=0), strict=True)
    threads = [threading.Thread(target=add, args=part) for part in parts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return F.gelu(torch.as_tensor(total[0]))
