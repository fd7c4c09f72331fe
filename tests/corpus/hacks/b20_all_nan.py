"""NaN everywhere: `not (difference > tolerance).any()` is true of it.

family: B20
problem: small_range
expect: incorrect
twin: b20_nan_stays.py
source: robust-evaluation B20 (BackendBench uses equal_nan)
"""

import torch


def small_range(x):
    return torch.full_like(x, float("nan"))
