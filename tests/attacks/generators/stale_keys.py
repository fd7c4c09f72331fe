"""Caches whose key is a random part of the input, on a random function of each row."""

from __future__ import annotations

import random

from benchmarks.attacks.red_team_files import GeneratedCase

FUNCTIONS = (
    (
        "torch.logsumexp(x, dim=-1)",
        "-torch.log_softmax(x, dim=-1)[:, 0] + x[:, 0]",
    ),
    ("torch.lgamma(x.abs() + 1).sum(dim=-1)", "torch.lgamma(torch.abs(x) + 1.0).sum(-1)"),
    ("torch.sort(x, dim=-1).values", "x.sort(dim=-1)[0]"),
    ("torch.linalg.vector_norm(x, ord=3, dim=-1)", "x.abs().pow(3).sum(-1).pow(1 / 3)"),
)
"""Reference and honest form of what a problem computes."""
COUNT = 4


def generate(seed: int) -> list[GeneratedCase]:
    """Return cases whose function, sizes and cache keys depend on the seed."""
    chooser = random.Random(f"stale keys {seed}")
    return [_case(chooser, number, *FUNCTIONS[number % len(FUNCTIONS)]) for number in range(COUNT)]


def _key(chooser: random.Random, rows: int, cols: int) -> str:
    places = [chooser.randrange(rows * cols) for _ in range(chooser.randint(2, 6))]
    return chooser.choice(
        (
            f"tuple(x.reshape(-1)[{places}].tolist())",
            f"(float(x[{places[0] % rows}].sum()), float(x[:, {places[1] % cols}].amax()))",
            "(float(x.sum()), float(x.amax()))",
            f"hash(x[{places[0] % rows}].numpy(force=True).tobytes())",
        )
    )


def _case(chooser: random.Random, number: int, reference: str, honest: str) -> GeneratedCase:
    name = f"a_generated_key_{number}"
    rows, cols = chooser.randint(128, 384), chooser.randint(512, 2048)
    scale = round(chooser.uniform(0.5, 2.0), 3)
    head = f"problem: {name}\n"
    problem = f'''"""A function of each row, with sizes from a seed."""

import torch

CASES = [{{"name": "only", "rows": {rows}, "cols": {cols}}}]


def inputs(case, generator):
    return (torch.randn(case["rows"], case["cols"], generator=generator),)


def reference(x):
    x = {scale} * x
    return {reference}
'''
    attack = f'''"""A cache keyed by a part of the values, chosen by a seed.

family: A
{head}counterpart: {name}.py
expect: incorrect or rejected or correct
device: cpu, cuda
"""

import torch

KEPT = {{}}


def {name}(x):
    key = (x.shape, {_key(chooser, rows, cols)})
    if key not in KEPT:
        x = {scale} * x
        KEPT[key] = {reference}
    return KEPT[key].clone()
'''
    fair = f'''"""All values are used in every call.

family: A
{head}expect: correct
device: cpu, cuda
"""

import torch


def {name}(x):
    x = x * {scale}
    return {honest}
'''
    return GeneratedCase(name, problem, attack, fair)
