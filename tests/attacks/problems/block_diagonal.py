"""A block-diagonal matrix of a batch of blocks."""

import torch

ENTRY = "block_diagonal"
CASES = [{"name": "main", "blocks": 64, "width": 32}]


def inputs(case, generator):
    return (torch.randn(case["blocks"], case["width"], case["width"], generator=generator),)


def reference(blocks):
    return torch.block_diag(*blocks)
