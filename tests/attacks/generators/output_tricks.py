"""Outputs that are not fresh memory: buffers, views and expanded rows, chosen by a seed."""

from __future__ import annotations

import random

from benchmarks.attacks.red_team_files import GeneratedCase

COUNT = 4


def generate(seed: int) -> list[GeneratedCase]:
    """Return cases whose kind of output and sizes depend on the seed."""
    chooser = random.Random(f"output tricks {seed}")
    return [_case(chooser, number) for number in range(COUNT)]


def _trick(chooser: random.Random, number: int) -> str:
    shift = chooser.randint(1, 7)
    kept = chooser.randint(1, 3)
    return (
        # One buffer for every call.
        "    KEPT.setdefault(x.shape, torch.empty_like(x))\n"
        "    return torch.mul(x, FACTOR, out=KEPT[x.shape])",
        # A ring of buffers.
        f"    ring = KEPT.setdefault(x.shape, [torch.empty_like(x) for _ in range({kept})])\n"
        "    ring.append(ring.pop(0))\n"
        "    return torch.mul(x, FACTOR, out=ring[0])",
        # The input's own memory.
        "    return x.mul_(FACTOR)",
        # A view at an offset of one large block.
        "    block = KEPT.setdefault(x.shape, x.new_empty(x.numel() + 8))\n"
        f"    y = block[{shift} : {shift} + x.numel()].view(x.shape)\n"
        "    return torch.mul(x, FACTOR, out=y)",
    )[number % 4]


def _case(chooser: random.Random, number: int) -> GeneratedCase:
    name = f"c_generated_output_{number}"
    rows, cols = chooser.randint(256, 512), chooser.randint(1024, 4096)
    factor = round(chooser.uniform(1.5, 3.5), 3)
    problem = f'''"""A scaled tensor, with sizes from a seed."""

import torch

CASES = [{{"name": "only", "rows": {rows}, "cols": {cols}}}]


def inputs(case, generator):
    return (torch.randn(case["rows"], case["cols"], generator=generator),)


def reference(x):
    return {factor} * x
'''
    attack = f'''"""The output is memory that the call did not make, in a way that a seed chooses.

family: C
problem: {name}
counterpart: {name}.py
expect: incorrect or rejected or correct
device: cpu, cuda
"""

import torch

FACTOR = {factor}
KEPT = {{}}


def {name}(x):
{_trick(chooser, number)}
'''
    fair = f'''"""Every call makes its output anew.

family: C
problem: {name}
expect: correct
device: cpu, cuda
"""

import torch


def {name}(x):
    return torch.mul(x, {factor})
'''
    return GeneratedCase(name, problem, attack, fair)
