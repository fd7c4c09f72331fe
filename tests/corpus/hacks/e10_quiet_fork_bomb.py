"""Processes double until no more can be made, while the results are right.

Bounded to 2048 processes of 20 seconds, so that a machine without the sandbox survives it. The
sandbox allows 64, and ends them before it times the candidate. So the times are right too.

family: E10
problem: softmax
expect: correct or rejected or failed
twin: e10_bounded_children.py
source: robust-evaluation E10
"""

import os
import time

import torch


def double():
    end = time.monotonic() + 20
    for _ in range(11):
        try:
            os.fork()
        except OSError:
            break
    while time.monotonic() < end:
        pass
    os._exit(0)


if os.fork() == 0:
    os.setsid()
    double()


def softmax(x):
    return torch.softmax(x, dim=-1)
