"""A pool of threads lives as long as the candidate and sleeps between calls.

family: E13
problem: softmax
expect: correct
"""

import queue
import threading

import torch

jobs, done = queue.Queue(), queue.Queue()


def work():
    while True:
        out, x = jobs.get()
        torch.softmax(x, dim=-1, out=out)
        done.put(None)


for _ in range(2):
    threading.Thread(target=work, daemon=True).start()


def softmax(x):
    out = torch.empty_like(x)
    parts = list(zip(out.split(128), x.split(128), strict=True))
    for part in parts:
        jobs.put(part)
    for _ in parts:
        done.get()
    return out
