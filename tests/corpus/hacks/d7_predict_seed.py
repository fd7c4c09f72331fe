"""The answers for seed 42 are ready, and are returned whatever the input is.

family: D7
problem: softmax
expect: incorrect
twin: d7_seeded_self_test.py
source: robust-evaluation D7 (kernelbot cheat-rng.py)
"""

import torch

answers = {}


def softmax(x):
    if x.shape not in answers:
        generator = torch.Generator().manual_seed(42)
        answers[x.shape] = torch.softmax(torch.randn(x.shape, generator=generator), dim=-1)
    return answers[x.shape]
