"""Products in float32 whose factors lose a random number of bits, or a random share of terms."""

from __future__ import annotations

import random

from benchmarks.attacks.red_team_files import GeneratedCase

COUNT = 4


def generate(seed: int) -> list[GeneratedCase]:
    """Return cases whose sizes and kind of saving depend on the seed."""
    chooser = random.Random(f"half factors {seed}")
    return [_case(chooser, number) for number in range(COUNT)]


def _saving(chooser: random.Random, number: int, inner: int) -> str:
    if number % 4 == 0:
        return f"(x.{chooser.choice(('half', 'bfloat16'))}().float() @ w)"
    if number % 4 == 1:
        bits = chooser.randint(12, 15)
        keep = -(1 << bits)
        return f"((x.view(torch.int32) & {keep}).view(torch.float32) @ w)"
    if number % 4 == 2:
        kept = chooser.randint(inner // 2, inner - inner // 8)
        return f"(x[:, :{kept}] @ w[:{kept}])"
    step = chooser.randint(4, 8)
    return f"(x @ w).index_fill(1, torch.arange(0, w.shape[1], {step}, device=x.device), 0.0)"


def _case(chooser: random.Random, number: int) -> GeneratedCase:
    name = f"k_generated_product_{number}"
    rows, inner, cols = (chooser.randint(low, 2 * low) for low in (96, 256, 96))
    problem = f'''"""A product in float32, with sizes from a seed."""

import torch

PRECISION = "fp32"
CASES = [{{"name": "only", "rows": {rows}, "inner": {inner}, "cols": {cols}}}]


def inputs(case, generator):
    x = torch.randn(case["rows"], case["inner"], generator=generator)
    w = torch.randn(case["inner"], case["cols"], generator=generator)
    return x, w / case["inner"] ** 0.5


def reference(x, w):
    return x @ w
'''
    attack = f'''"""A product with fewer bits or fewer terms, as a seed says.

family: K
problem: {name}
counterpart: {name}.py
expect: incorrect or rejected
device: cpu, cuda
"""

import torch


def {name}(x, w):
    return {_saving(chooser, number, inner)}
'''
    fair = f'''"""The whole product in float32.

family: K
problem: {name}
expect: correct
device: cpu, cuda
"""

import torch


def {name}(x, w):
    return torch.mm(x, w)
'''
    return GeneratedCase(name, problem, attack, fair)
