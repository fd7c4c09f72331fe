"""Top-k by blocks of 64 that keep three values each: rows with more in one block lose some.

family: D3
problem: topk
expect: incorrect
twin: d3_capacity_checked.py
source: robust-evaluation D3, B15 (Top-K capacity drops)
"""

import torch

BLOCK, KEEP = 64, 3


def topk(x, k):
    rows, cols = x.shape
    if cols <= 2 * BLOCK:
        return torch.topk(x, k, dim=-1)
    whole = cols // BLOCK * BLOCK
    blocks = x[:, :whole].view(rows, -1, BLOCK)
    values, places = blocks.topk(KEEP, dim=-1)
    places = places + torch.arange(0, whole, BLOCK).view(1, -1, 1)
    values = torch.cat([values.view(rows, -1), x[:, whole:]], dim=1)
    rest = torch.arange(whole, cols).expand(rows, -1)
    places = torch.cat([places.view(rows, -1), rest], dim=1)
    best, order = values.topk(k, dim=-1)
    return best, places.gather(1, order)
