"""A header nested deeper than a parser likes.

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
    text = b"[" * 60000
    everywhere(len(text).to_bytes(4, "big") + text)
    return torch.relu(x + y)
