"""Contrast and shift become one multiplication and one addition, so the last bit may differ.

family: I
problem: i_pixels
expect: correct
device: cpu, cuda
"""

import torch


def i_pixels(pixels, contrast):
    factor = contrast[:, None, None, None]
    y = torch.addcmul(128 - 128 * factor, pixels.float(), factor)
    y = y.round_().clamp_(0, 255).to(torch.uint8)
    return y, torch.eq(y, 0).logical_or_(y == 255)
