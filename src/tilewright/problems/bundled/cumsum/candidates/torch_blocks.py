"""Scans within blocks of 64 columns, then adds to each block the sum of those before it."""

import torch
import torch.nn.functional as F


def cumsum(x):
    rows, cols = x.shape
    blocks = -(-cols // 64)
    tiles = F.pad(x, (0, blocks * 64 - cols)).view(rows, blocks, 64)
    within = tiles.cumsum(dim=-1)
    before = F.pad(within[:, :-1, -1], (1, 0)).cumsum(dim=-1)
    return torch.add(within, before.unsqueeze(-1)).view(rows, -1)[:, :cols].contiguous()
