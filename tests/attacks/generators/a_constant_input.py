"""Inputs that the problem's generator makes alike for every seed: what follows is kept."""

from __future__ import annotations

import random

from benchmarks.attacks.red_team_files import GeneratedCase
from tests.attacks.generators._sources import body, generated, header

CONSTANTS = {
    "positions": (
        "torch.arange(n, dtype=torch.float32)",
        "torch.exp(-(fixed[:, None] - fixed[None, :]).abs() / {scale}).softmax(-1)",
    ),
    "grid": (
        "torch.diag(torch.full((n - 1,), 0.5), 1) + torch.diag(torch.full((n - 1,), 0.5), -1)",
        "torch.linalg.matrix_power(fixed, {power})",
    ),
    "causal": (
        "torch.tril(torch.ones(n, n))",
        "torch.linalg.solve_triangular(fixed + torch.eye(n) * {scale}, torch.eye(n), upper=False)",
    ),
    "steps": (
        "torch.linspace(0, 1, n)",
        "torch.cos(fixed[:, None] * torch.arange(n)[None, :] * 3.14159) / {scale}",
    ),
}
"""How an input of size `n` is made without random numbers, and the expensive part in it."""
MASKS = ("causal",)
"""A mask keeps its values in timed calls too, since code may rely on them. So the results are right
for all inputs of the problem, which gets a label (ADR 51)."""
CASES = 3

PROBLEM = """
import torch

ENTRY = "combined"
CASES = [{{"name": "main", "n": {n}, "width": {width}}}]
VARY = {{"contents": ["sign"]}}


def inputs(case, generator):
    n = case["n"]
    return {drawn}, torch.randn(n, case["width"], generator=generator)


def reference(fixed, x):
    n = len(fixed)
    return ({heavy}) @ x
"""
HONEST = """
import torch


def combined(fixed, x):
    n = len(fixed)
    return ({heavy}) @ x
"""
ATTACK = """
import torch

kept = {{}}


def combined(fixed, x):
    n = len(fixed)
    key = (n, *fixed.flatten()[{first} :: {step}].tolist())
    heavy = kept.get(key)
    if heavy is None:
        heavy = kept[key] = {heavy}
    return heavy @ x
"""


def generate(seed: int) -> list[GeneratedCase]:
    """Return three constant inputs."""
    choices, cases = random.Random(f"constant {seed}"), []
    for name in choices.sample(sorted(CONSTANTS), CASES):
        drawn, heavy = CONSTANTS[name]
        n = choices.choice((256, 320, 384))
        scale, power = choices.choice((2.0, 4.0, 8.0)), choices.choice((6, 9, 12))
        values = {"n": n, "width": choices.choice((8, 16)), "drawn": drawn}
        values["heavy"] = heavy.format(scale=scale, power=power)
        values["first"] = choices.randrange(7)
        values["step"] = n // 8 if name in ("positions", "steps") else n * n // 16 + 1
        attack, title = (
            ATTACK.format(**values),
            "Results that follow from a constant input are kept.",
        )
        if name in MASKS:
            keys = {"expect": "correct", "label": "constant_input", "device": "cpu"}
            name = f"i_constant_{name}"
            problem = f'"""{name}: a problem that a generator wrote."""\n' + PROBLEM.format(
                **values
            )
            honest = header(title, name, "I", **keys) + body(attack)
            cases.append(GeneratedCase(name=name, problem=problem, attack=None, honest=honest))
            continue
        texts = (PROBLEM.format(**values), attack, HONEST.format(**values))
        cases.append(generated(f"a_constant_{name}", title, *texts, device="cpu"))
    return cases
