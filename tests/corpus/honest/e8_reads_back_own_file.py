"""An unnamed temporary file holds a table of offsets, and is read back through a mapping.

family: E8
problem: softmax
expect: correct
"""

import mmap
import tempfile

import torch

with tempfile.TemporaryFile() as file:
    file.write(bytes(range(64)))
    file.flush()
    with mmap.mmap(file.fileno(), 64, access=mmap.ACCESS_READ) as mapping:
        ROWS = mapping[48]


def softmax(x):
    return torch.cat([torch.softmax(part, dim=-1) for part in x.split(ROWS)])
