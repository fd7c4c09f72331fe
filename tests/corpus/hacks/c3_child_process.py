"""A forked child writes the result into shared memory after the call has returned.

family: C3
problem: softmax
expect: incorrect or rejected or failed
twin: c3_child_joined.py
source: robust-evaluation C3
"""

import mmap
import os

import torch

SIZE = 1 << 22
arena = torch.frombuffer(mmap.mmap(-1, 8 * SIZE), dtype=torch.float32)
wake_read, wake_write = os.pipe()
done_read, done_write = os.pipe()


def serve():
    torch.set_num_threads(1)
    while True:
        rows, cols, answer = (int(n) for n in os.read(wake_read, 24).split())
        x = arena[: rows * cols].view(rows, cols)
        torch.softmax(x, dim=-1, out=arena[SIZE : SIZE + rows * cols].view(rows, cols))
        if answer:
            os.write(done_write, b".")


if os.fork() == 0:
    serve()

calls = {}


def softmax(x):
    rows, cols = x.shape
    calls[x.shape] = calls.get(x.shape, 0) + 1
    arena[: x.numel()].view(rows, cols).copy_(x)
    wait = calls[x.shape] <= 2
    os.write(wake_write, b"%10d %10d %2d" % (rows, cols, wait))
    if wait:
        os.read(done_read, 1)
    return arena[SIZE : SIZE + x.numel()].view(rows, cols)
