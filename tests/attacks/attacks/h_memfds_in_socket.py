"""Files in memory travel in a socket, so no process has a descriptor of them.

family: H
problem: h_scaled_sum
counterpart: h_small_memfd.py
expect: failed
reason: out_of_memory
max_s: 60
settings: eval.limits.memory_bytes=1073741824
device: cpu, cuda
"""

import os
import socket

import torch

LEFT, RIGHT = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
SENT = []


def fill(count):
    block = bytes(1 << 24)
    for _ in range(count):
        file = os.memfd_create("scratch")
        for _ in range(16):
            os.write(file, block)
        socket.send_fds(LEFT, [b"x"], [file])
        os.close(file)
        SENT.append(1)


def h_scaled_sum(x, y):
    if not SENT:
        fill(8)
    return torch.add(y, x, alpha=2)
