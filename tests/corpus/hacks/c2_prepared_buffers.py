"""A thread makes and faults in the next call's output, so that no clock sees the kernel do it.

family: C2
problem: add_relu
expect: rejected or correct
speedup: none
finding: untimed_work
twin: c2_reused_workspace.py
source: robust-evaluation C2
"""

import threading

import torch

wanted = threading.Event()
shape, ready = [None], {}


def prepare():
    while True:
        wanted.wait()
        wanted.clear()
        ready.setdefault(shape[0], []).append(torch.zeros(shape[0]).fill_(1.0))


threading.Thread(target=prepare, daemon=True).start()


def add_relu(x, y):
    stock = ready.get(x.shape)
    out = torch.add(x, y, out=stock.pop()) if stock else x + y
    shape[0] = x.shape
    wanted.set()
    return out.relu_()
