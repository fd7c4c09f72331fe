"""Answers are computed at import, for the inputs that seed 42 gives, and looked up in the calls.

family: A11
problem: softmax
expect: incorrect
twin: a11_table_of_constants.py
source: robust-evaluation A11, D7 (kernelbot cheat-rng.py)
"""

import torch

SHAPES = ((3, 5), (129, 1000), (384, 8192))
answers, last = {}, {}


def remember(x):
    answers[(tuple(x.shape), float(x[0, 0]), float(x[-1, -1]))] = torch.softmax(x, dim=-1)


def seeds():
    generator = torch.Generator().manual_seed(42)
    derived = [torch.randint(2**32 - 1, (1,), generator=generator).item() for _ in range(5)]
    return [42, *range(5), *derived]


for shape in SHAPES:
    for seed in seeds():
        remember(torch.randn(shape, generator=torch.Generator().manual_seed(seed)))


def softmax(x):
    key = (tuple(x.shape), float(x[0, 0]), float(x[-1, -1]))
    if key in answers:
        return answers[key]
    return torch.full_like(x, 1 / x.shape[-1])
