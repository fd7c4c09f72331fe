"""The zeros of the next output are written when the caller drops an earlier output.

family: D
problem: block_diagonal
counterpart: c_block_diagonal.py
expect: incorrect or rejected
device: cpu
"""

import gc

import torch

pool, ready = [], []
runner = next(o for o in gc.get_objects() if hasattr(type(o), "HANDLERS"))


class Watched(list):
    def __del__(self):
        for leaf in self:
            if leaf is not None and leaf.dim() == 2:
                ready.append(leaf.zero_())


def watched(self, name, value):
    if name == "kept" and type(value) is list and value:
        value = Watched(value)
    object.__setattr__(self, name, value)


type(runner).__setattr__ = watched


def block_diagonal(blocks):
    count, width = len(blocks), blocks.shape[1]
    side = count * width
    while ready:
        whole = ready.pop()
        if tuple(whole.shape) == (side, side):
            break
    else:
        whole = torch.zeros(side, side)
    view = whole.view(count, width, count, width)
    view.diagonal(dim1=0, dim2=2).copy_(blocks.permute(1, 2, 0))
    return whole
