"""Random bytes on the channel.

problem: add_relu
expect: failed
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
    everywhere(bytes(range(256)) * 64)
    return torch.relu(x + y)
