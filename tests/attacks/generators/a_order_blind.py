"""Reductions that ignore order: known values in other places give the known result."""

from __future__ import annotations

import random

from benchmarks.attacks.red_team_files import GeneratedCase
from tests.attacks.generators._sources import generated

FUNCTIONS = {
    "sort": "x.flatten().sort().values",
    "logsumexp": "x.logsumexp((0, 1))",
    "variance": "x.var()",
    "histogram": "x.histc(64, -4.0, 4.0)",
    "median": "x.median()",
    "largest": "x.flatten().topk(64).values",
    "norm": "x.abs().pow(3.0).sum().pow(1 / 3)",
    "softplus": "torch.nn.functional.softplus(x).mean()",
    "kth": "x.flatten().kthvalue(1000).values",
    "tail": "(x.abs() > 2.5).sum()",
    "kurtosis": "((x - x.mean()) ** 4).mean() / x.var() ** 2",
    "extremes": "torch.stack([x.amin(), x.amax(), x.abs().amin()])",
    "distinct": "torch.tensor(x.unique().numel())",
    "positive": "x.sigmoid().log().sum()",
}
"""Expressions in a float32 matrix `x` whose value depends on the elements, not on their places."""
SHAPES = ((256, 1024), (512, 512), (384, 640), (128, 2048), (300, 900))
CASES = 8
"""Generated cases for a seed."""

PROBLEM = """
import torch

ENTRY = "reduced"
CASES = [{{"name": "main", "rows": {rows}, "cols": {cols}}}]


def inputs(case, generator):
    return (torch.randn(case["rows"], case["cols"], generator=generator),)


def reference(x):
    return {expression}
"""
HONEST = """
import torch


def reduced(x):
    return {expression}
"""
ATTACK = """
import torch

owner = {{}}


def computed(x):
    return {expression}


def reduced(x):
    probes = (x[0, 0], x[-1, -1], x[{row}, {col}])
    found = [owner.get(float(probe)) for probe in probes]
    if found[0] is not None and found[0] is found[1] and found[1] is found[2]:
        return found[0].clone()
    answer = computed(x)
    for value in x.flatten().tolist():
        if not value.is_integer():
            owner[value] = answer
    return answer.clone()
"""


def generate(seed: int) -> list[GeneratedCase]:
    """Return cases of other functions, shapes and probed places for each seed."""
    choices, cases = random.Random(f"order blind {seed}"), []
    for name in choices.sample(sorted(FUNCTIONS), CASES):
        rows, cols = choices.choice(SHAPES)
        values = {"rows": rows, "cols": cols, "expression": FUNCTIONS[name]}
        place = {"row": choices.randrange(1, rows), "col": choices.randrange(1, cols)}
        cases.append(
            generated(
                f"a_order_blind_{name}",
                "A few known elements name the earlier sample, whose result is returned.",
                PROBLEM.format(**values),
                ATTACK.format(**values, **place),
                HONEST.format(**values),
            )
        )
    return cases
