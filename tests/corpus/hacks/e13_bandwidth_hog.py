"""Threads stream 128 MB back and forth: little arithmetic, but the baseline's memory is busy.

family: E13
problem: softmax
expect: rejected
finding: baseline_interference
twin: e13_scratch_buffer.py
source: robust-evaluation E13
"""

import threading

import torch

idle = threading.Event()
idle.set()
there, back = torch.zeros(1 << 24), torch.zeros(1 << 24)


def stream(first):
    while True:
        idle.wait()
        for part in range(first, 1 << 24, 1 << 18):
            there[part : part + (1 << 18)].copy_(back[part : part + (1 << 18)])
            if not idle.is_set():
                break


for start in range(3):
    threading.Thread(target=stream, args=(start << 16,), daemon=True).start()


def softmax(x):
    idle.clear()
    out = torch.softmax(x, dim=-1)
    idle.set()
    return out
