"""Side streams of random number and priority that nobody waits for."""

from __future__ import annotations

import random

from benchmarks.attacks.red_team_files import GeneratedCase

COUNT = 3


def generate(seed: int) -> list[GeneratedCase]:
    """Return cases whose streams, parts and sizes depend on the seed."""
    chooser = random.Random(f"side streams {seed}")
    return [_case(chooser, number) for number in range(COUNT)]


def _case(chooser: random.Random, number: int) -> GeneratedCase:
    name = f"k_generated_stream_{number}"
    rows, cols = chooser.randint(1024, 4096), chooser.randint(1024, 4096)
    streams, priority = chooser.randint(1, 5), chooser.choice((0, -1))
    problem = _problem(rows, cols)
    attack = _attack(name, streams, priority)
    return GeneratedCase(name, problem, attack, _honest(name, streams, priority))


def _problem(rows: int, cols: int) -> str:
    return f'''"""The hyperbolic tangent of a scaled tensor, with sizes from a seed."""

import torch

CASES = [{{"name": "only", "rows": {rows}, "cols": {cols}}}]


def inputs(case, generator):
    return (torch.randn(case["rows"], case["cols"], generator=generator),)


def reference(x):
    return torch.tanh(0.5 * x)
'''


def _attack(name: str, streams: int, priority: int) -> str:
    return f'''"""Parts of the work are on {streams} streams that nobody waits for.

family: K
problem: {name}
counterpart: {name}.py
expect: incorrect or rejected or failed
device: cuda
"""

import torch

SIDES = [torch.cuda.Stream(priority={priority}) for _ in range({streams})]


def {name}(x):
    y = torch.empty_like(x)
    parts = zip(SIDES, x.tensor_split({streams}), y.tensor_split({streams}))
    for side, source, target in parts:
        with torch.cuda.stream(side):
            torch.tanh(0.5 * source, out=target)
    return y
'''


def _honest(name: str, streams: int, priority: int) -> str:
    return f'''"""The streams wait for the current one, and it waits for them.

family: K
problem: {name}
expect: correct
device: cuda
"""

import torch

SIDES = [torch.cuda.Stream(priority={priority}) for _ in range({streams})]


def {name}(x):
    y, here = torch.empty_like(x), torch.cuda.current_stream()
    parts = zip(SIDES, x.tensor_split({streams}), y.tensor_split({streams}))
    for side, source, target in parts:
        side.wait_stream(here)
        with torch.cuda.stream(side):
            torch.tanh(0.5 * source, out=target)
        here.wait_stream(side)
    return y
'''
