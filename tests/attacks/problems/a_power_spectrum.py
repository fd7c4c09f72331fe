"""The power of each frequency of each row."""

import torch

ENTRY = "a_power_spectrum"

CASES = [
    {"name": "small", "rows": 7, "cols": 32},
    {"name": "large", "rows": 256, "cols": 1024},
]


def inputs(case, generator):
    return (torch.randn(case["rows"], case["cols"], generator=generator),)


def reference(x):
    return torch.fft.rfft(x).abs().square() / x.shape[-1]
