"""The outputs of an evaluator with seed 42 are baked at import and returned in order.

family: A11
problem: negate
expect: incorrect
twin: a11_table_of_constants.py
source: robust-evaluation A11 ("setup pre-computation")
"""

import torch

SHAPE = (1024, 2048)
generator = torch.Generator().manual_seed(42)
seeds = [torch.randint(2**32 - 1, (1,), generator=generator).item() for _ in range(5)]
baked = [
    -torch.randn(SHAPE, generator=torch.Generator().manual_seed(seed)) for seed in [*seeds, 42]
]
calls = 0


def negate(x):
    global calls
    if x.shape != SHAPE:
        return -x
    calls += 1
    return baked[min(calls, len(baked)) - 1]
