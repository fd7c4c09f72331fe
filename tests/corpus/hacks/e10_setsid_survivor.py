"""A grandchild in its own session outlives the process group and keeps a processor busy.

family: E10
problem: softmax
expect: correct
speedup: none
twin: e10_waited_child.py
source: robust-evaluation E10 (one survivor after killpg)
"""

import os
import signal
import time

import torch


def survive():
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    end = time.monotonic() + 300
    while time.monotonic() < end:
        pass


child = os.fork()
if child == 0:
    os.setsid()
    if os.fork() == 0:
        survive()
    os._exit(0)
os.waitpid(child, 0)


def softmax(x):
    return torch.softmax(x, dim=-1)
