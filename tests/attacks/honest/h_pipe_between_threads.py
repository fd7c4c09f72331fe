"""Two threads of the candidate talk through a pipe and a socket.

family: H
problem: h_scaled_sum
expect: correct
device: cpu, cuda
"""

import os
import socket
import threading

import torch

READ, WRITE = os.pipe()
LEFT, RIGHT = socket.socketpair()
os.write(WRITE, b"ready")
thread = threading.Thread(target=lambda: LEFT.send(os.read(READ, 5)))
thread.start()
thread.join()
assert RIGHT.recv(5) == b"ready"


def h_scaled_sum(x, y):
    return torch.add(y, x, alpha=2)
