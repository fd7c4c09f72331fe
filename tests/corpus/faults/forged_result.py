"""A result of its own making on every socket, before the real one.

problem: add_relu
expect: failed or incorrect or rejected
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


def frame(text):
    return len(text).to_bytes(4, "big") + text


def add_relu(x, y):
    everywhere(frame(b'{"kind":"result","body":0,"outputs":[],"launches":0,"operator_counts":{}}'))
    return torch.zeros_like(x)
