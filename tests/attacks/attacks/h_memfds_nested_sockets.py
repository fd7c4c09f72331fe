"""A socket with files in memory in flight is itself sent through another socket and closed.

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

OUTER, HOLDER = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
SENT = []


def fill(count):
    block = bytes(1 << 24)
    for _ in range(count):
        left, right = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        file = os.memfd_create("scratch")
        for _ in range(16):
            os.write(file, block)
        socket.send_fds(left, [b"x"], [file])
        os.close(file)
        socket.send_fds(OUTER, [b"y"], [right.fileno(), left.fileno()])
        left.close()
        right.close()
        SENT.append(1)


def h_scaled_sum(x, y):
    if not SENT:
        fill(8)
    return torch.add(y, x, alpha=2)
