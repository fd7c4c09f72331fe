"""A convolution with 3x3 windows in float32."""

import torch

ENTRY = "i_convolution"
PRECISION = "fp32"

CASES = [
    {"name": "small", "batch": 2, "channels": 8, "size": 14},
    {"name": "large", "batch": 4, "channels": 32, "size": 30},
]


def inputs(case, generator):
    b, c, s = case["batch"], case["channels"], case["size"]
    x = torch.randn(b, c, s, s, generator=generator)
    return x, torch.randn(c, c, 3, 3, generator=generator) / (3 * c**0.5)


def reference(x, w):
    return torch.nn.functional.conv2d(x, w)
