"""Hundreds of descriptors are passed over every socket.

problem: add_relu
expect: failed
reason: protocol_violation
"""

import array
import os
import socket
import stat

import torch


def flood(descriptor):
    copies = array.array("i", [os.open("/dev/null", os.O_RDONLY) for _ in range(200)])
    with socket.socket(fileno=os.dup(descriptor)) as channel:
        for _ in range(4):
            channel.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, copies)])


def add_relu(x, y):
    for descriptor in range(3, 64):
        try:
            if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                flood(descriptor)
        except OSError:
            pass
    return torch.relu(x + y)
