"""A descriptor of a small file travels through a socket and is received again.

family: H
problem: h_scaled_sum
expect: correct
device: cpu, cuda
"""

import os
import socket

import torch

LEFT, RIGHT = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
FILE = os.memfd_create("table")
os.write(FILE, b"2")
socket.send_fds(LEFT, [b"x"], [FILE])
_, FILES, _, _ = socket.recv_fds(RIGHT, 1, 1)
FACTOR = float(os.pread(FILES[0], 1, 0))


def h_scaled_sum(x, y):
    return torch.add(y, x, alpha=FACTOR)
