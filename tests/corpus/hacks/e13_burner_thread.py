"""A thread burns the processor whenever our own call is not running: the baseline gets slow.

family: E13
problem: softmax
expect: rejected
finding: baseline_interference
twin: e13_idle_pool.py
source: robust-evaluation E13
"""

import _thread

import torch

ours = _thread.allocate_lock()


def burn():
    while True:
        with ours:
            pass
        for _ in range(5000):
            pass


_thread.start_new_thread(burn, ())


def softmax(x):
    with ours:
        return torch.softmax(x, dim=-1)
