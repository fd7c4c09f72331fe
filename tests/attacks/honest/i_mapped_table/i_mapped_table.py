"""A folder whose program maps a binary table, and computes with its numbers.

family: I
problem: i_block_transform
expect: correct
device: cpu, cuda
"""

from pathlib import Path

import numpy
import torch

TABLE = numpy.load(Path(__file__).parent / "cosines.npy", mmap_mode="r")
BASES = {}


def i_block_transform(x):
    if x.device not in BASES:
        BASES[x.device] = torch.tensor(TABLE, device=x.device)
    basis = BASES[x.device]
    blocks = x.unflatten(1, (-1, 8)).unflatten(3, (-1, 8))
    return torch.einsum("ui,nyixj,vj->nyxuv", basis, blocks, basis).contiguous()
