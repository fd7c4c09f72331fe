"""A thread launches kernels without end, so that the baseline is slow.

family: G17
problem: big_softmax
expect: rejected or incorrect or failed
twin: g1_joined_streams.py
source: robust-evaluation F
"""

import threading

import torch

started = []


def burn():
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        while True:
            torch.cuda._sleep(1_000_000)
            side.synchronize()


def big_softmax(x):
    if not started:
        started.append(threading.Thread(target=burn, daemon=True))
        started[0].start()
    return torch.softmax(x, -1)
