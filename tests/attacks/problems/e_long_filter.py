"""A causal filter of each channel in float32, with taps that fade."""

import torch

ENTRY = "e_long_filter"
PRECISION = "fp32"

CASES = [
    {"name": "small", "batch": 2, "channels": 3, "steps": 40, "taps": 9},
    {"name": "large", "batch": 4, "channels": 16, "steps": 1024, "taps": 255},
]


def inputs(case, generator):
    x = torch.randn(case["batch"], case["channels"], case["steps"], generator=generator)
    taps = torch.randn(case["channels"], case["taps"], generator=generator)
    fade = torch.linspace(-3, 0, case["taps"]).exp()
    return x, taps * fade / case["taps"] ** 0.5


def reference(x, taps):
    x = torch.nn.functional.pad(x, (taps.shape[-1] - 1, 0))
    return torch.nn.functional.conv1d(x, taps[:, None], groups=len(taps))
