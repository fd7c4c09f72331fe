"""Inputs of well-known seeds, or of a seed in the environment, are answered from a table.

family: D7
problem: softmax
expect: correct
speedup: none
twin: d7_seeded_noise.py
source: robust-evaluation D7
"""

import os
import re

import torch

SEEDS = {0, 1, 42, 123, 1234, 2024} | {
    int(digits) % 2**63
    for text in os.environ.values()
    for digits in re.findall(r"\d{2,19}", text)[:4]
}
table = {}


def prepare(shape):
    found = []
    for seed in sorted(SEEDS)[:40]:
        x = torch.randn(shape, generator=torch.Generator().manual_seed(seed))
        found.append((x, torch.softmax(x, dim=-1)))
    return found


def softmax(x):
    if x.shape not in table:
        table[x.shape] = prepare(x.shape)
    for seen, answer in table[x.shape]:
        if torch.equal(seen[0], x[0]):
            return answer
    e = (x - x.amax(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True)
