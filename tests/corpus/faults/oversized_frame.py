"""A frame of four gigabytes is announced.

problem: add_relu
expect: failed
reason: protocol_violation
"""

import os
import socket
import stat

import torch


def everywhere(data):
    for fd in range(3, 256):
        try:
            if stat.S_ISSOCK(os.fstat(fd).st_mode):
                os.write(fd, data)
        except OSError:
            continue


def add_relu(x, y):
    everywhere(b"\xff\xff\xff\xff")
    return torch.relu(x + y)
