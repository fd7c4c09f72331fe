"""The cosine transform of each block of eight by eight pixels."""

import math

import torch

ENTRY = "i_block_transform"

CASES = [
    {"name": "small", "images": 1, "size": 24},
    {"name": "large", "images": 4, "size": 256},
]


def inputs(case, generator):
    shape = (case["images"], case["size"], case["size"])
    return (torch.randn(shape, generator=generator),)


def reference(x):
    places = torch.arange(8, dtype=x.dtype, device=x.device)
    basis = torch.cos((2 * places + 1) * places[:, None] * (math.pi / 16)) / 2
    basis[0] /= math.sqrt(2)
    blocks = x.unfold(1, 8, 8).unfold(2, 8, 8)
    return basis @ blocks @ basis.t()
