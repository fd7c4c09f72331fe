"""The conjugate of a complex product, and its imaginary part."""

import torch

ENTRY = "i_conjugates"

CASES = [
    {"name": "small", "rows": 7, "cols": 33},
    {"name": "large", "rows": 256, "cols": 1024},
]


def inputs(case, generator):
    shape = (case["rows"], case["cols"])
    x = torch.randn(shape, generator=generator, dtype=torch.complex64)
    return x, torch.randn(shape, generator=generator, dtype=torch.complex64)


def reference(x, y):
    real = x.real * y.real - x.imag * y.imag
    imaginary = -(x.real * y.imag + x.imag * y.real)
    return torch.complex(real, imaginary), imaginary
