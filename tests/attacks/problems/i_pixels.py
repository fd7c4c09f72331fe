"""Brightness and contrast of an image of bytes, and the pixels that are saturated."""

import torch

ENTRY = "i_pixels"

CASES = [
    {"name": "small", "images": 1, "size": 17},
    {"name": "large", "images": 4, "size": 256},
]


def inputs(case, generator):
    shape = (case["images"], 3, case["size"], case["size"])
    pixels = torch.randint(0, 256, shape, generator=generator, dtype=torch.uint8)
    return pixels, 0.5 + torch.rand(case["images"], generator=generator)


def reference(pixels, contrast):
    y = (pixels.float() - 128) * contrast[:, None, None, None] + 128
    y = y.round().clamp(0, 255).to(torch.uint8)
    return y, (y == 0) | (y == 255)
