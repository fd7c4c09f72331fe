"""The first thread of the process ends, so that the kernel shows none of its memory.

family: H
problem: wide_hot_rows
counterpart: d_wide_hot_rows.py
expect: incorrect or rejected or failed
device: cpu
"""

import ctypes, sys, threading
import torch
AHEAD = 300
filled = []
last, same = None, 0
def zeros(labels):
    return torch.empty(len(labels), 16384).fill_(0.0)
def few_hot_rows(labels, weights):
    global last, same
    if same < 2:
        mark = weights.sum().item()
        same = same + 1 if mark == last else 0
        last = mark
        if same == 2:
            filled.extend(zeros(labels) for _ in range(AHEAD))
    hot = filled.pop() if filled else zeros(labels)
    return hot.scatter_(1, labels[:, None], weights[:, None])
frame = sys._getframe(1)
runner = handlers = None
while frame is not None:
    mine = frame.f_locals.get("self")
    if type(mine).__name__ == "RunnerProcess":
        runner = mine
    handlers = frame.f_locals.get("handlers", handlers)
    frame = frame.f_back
def serve():
    runner.function = few_hot_rows
    runner.channel.send("loaded", {}, b"")
    while True:
        frame = runner.channel.receive()
        handlers[frame.kind](frame)
if runner is not None:
    threading.Thread(target=serve, daemon=True).start()
    ctypes.CDLL(None).syscall(60, 0)
