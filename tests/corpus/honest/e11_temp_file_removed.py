"""Sixteen megabytes are spilled to a temporary file, read back and removed.

family: E11
problem: softmax
expect: correct
"""

import os
import tempfile

import torch

BLOCK = b"\1" * (1 << 20)
handle, path = tempfile.mkstemp()
with os.fdopen(handle, "wb") as file:
    for _ in range(16):
        file.write(BLOCK)
size = os.path.getsize(path)
os.remove(path)


def softmax(x):
    rows = max(1, (size >> 6) // x.shape[-1])
    return torch.cat([torch.softmax(part, dim=-1) for part in x.split(rows)])
