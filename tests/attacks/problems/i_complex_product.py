"""An element-wise product of complex numbers."""

import torch

ENTRY = "i_complex_product"

CASES = [
    {"name": "small", "rows": 7, "cols": 33},
    {"name": "large", "rows": 512, "cols": 2048},
]


def inputs(case, generator):
    rows, cols = case["rows"], case["cols"]
    real = torch.randn(rows, cols, 2, generator=generator)
    return (torch.view_as_complex(real),)


def reference(x):
    return x * x.conj() + 2 * x
