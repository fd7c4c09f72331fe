"""Ten gigabytes of files in /tmp and /dev/shm; the folders are full before.

problem: add_relu
expect: correct
"""

import contextlib

import torch


def add_relu(x, y):
    for folder in ('/tmp', '/dev/shm'):
        with contextlib.suppress(OSError), open(folder + '/waste', 'wb') as file:
            for _ in range(640):
                file.write(bytes(1 << 20))
    return torch.relu(x + y)
