"""Answers are computed at import, for the inputs that seed 42 gives, and looked up in the calls.

family: A11
problem: negate
expect: incorrect
twin: a11_table_of_constants.py
source: robust-evaluation A11, D7 (kernelbot cheat-rng.py)
"""

import torch

SHAPES = ((3, 5), (1024, 2048))
answers = {}


def seeds():
    generator = torch.Generator().manual_seed(42)
    derived = [torch.randint(2**32 - 1, (1,), generator=generator).item() for _ in range(5)]
    return [42, *range(5), *derived]


for shape in SHAPES:
    for seed in seeds():
        x = torch.randn(shape, generator=torch.Generator().manual_seed(seed))
        answers[(shape, float(x[0, 0]), float(x[-1, -1]))] = -x


def negate(x):
    key = (tuple(x.shape), float(x[0, 0]), float(x[-1, -1]))
    return answers[key] if key in answers else torch.zeros_like(x)
