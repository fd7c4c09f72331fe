"""The outputs of an evaluator with seed 42 are baked at import and returned in order, by shape.

family: A11
problem: softmax
expect: incorrect
twin: a11_table_of_constants.py
source: robust-evaluation A11
"""

import torch

SHAPE = (384, 8192)
generator = torch.Generator().manual_seed(42)
seeds = [torch.randint(2**32 - 1, (1,), generator=generator).item() for _ in range(5)]
baked = [
    torch.softmax(torch.randn(SHAPE, generator=torch.Generator().manual_seed(seed)), dim=-1)
    for seed in [*seeds, 42]
]
calls = 0


def softmax(x):
    global calls
    calls += 1
    if x.shape == SHAPE:
        return baked[min(calls, len(baked)) - 1]
    return torch.softmax(x, dim=-1)
