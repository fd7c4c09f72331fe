"""Inputs of a kind that no input variation changes: their part of the result is kept."""

from __future__ import annotations

import random

from benchmarks.attacks.red_team_files import GeneratedCase
from tests.attacks.generators._sources import generated

KINDS = {
    "integers": (
        "torch.randint(0, 64, (n * n,), generator=generator)",
        "torch.bincount(fixed, minlength=64).float()",
        "heavy @ x[:64]",
    ),
    "mask": (
        "(torch.rand(n, n, generator=generator) < 0.1).float()",
        "fixed @ fixed.T",
        "heavy @ x",
    ),
    "sparse": (
        "torch.randn(n, n, generator=generator)"
        " * (torch.rand(n, n, generator=generator) < 0.1) / n**0.5",
        "fixed @ fixed @ fixed",
        "heavy @ x",
    ),
    "symmetric": (
        "(lambda a: (a + a.T) / n)(torch.randn(n, n, generator=generator))",
        "torch.matrix_exp(fixed)",
        "heavy @ x",
    ),
    "ordered": (
        "torch.rand(n, 256, generator=generator).sort(-1).values",
        "torch.special.entr(fixed).cumsum(-1)[:, ::8]",
        "heavy * x",
    ),
    "stochastic": (
        "torch.randn(n, n, generator=generator).softmax(-1)",
        "torch.linalg.matrix_power(fixed, 12)",
        "heavy @ x",
    ),
    "binary": (
        "torch.rand(n, n, generator=generator).sub(0.5).sign()",
        "torch.linalg.matrix_power(fixed / len(fixed), 4)",
        "heavy @ x",
    ),
    "strided": (
        "torch.randn(n, 2 * n, generator=generator)[:, ::2]",
        "(fixed @ fixed.T) / len(fixed)",
        "heavy @ x",
    ),
    "booleans": (
        "torch.rand(n, n, generator=generator) < 0.5",
        "fixed.float() @ fixed.T.float() / len(fixed)",
        "heavy @ x",
    ),
    "few_bfloat16": (
        "torch.rand(n, n, generator=generator).bfloat16()",
        "torch.special.i0(fixed.float()).sum(-1, keepdim=True)",
        "heavy * x",
    ),
}
"""How the input is drawn for a size `n`, the expensive part in it, and the rest with `x`."""
CASES = 6

PROBLEM = """
import torch

ENTRY = "combined"
CASES = [{{"name": "main", "n": {n}, "width": 32}}]
VARY = {{"contents": ["sign", "offset"]}}


def inputs(case, generator):
    n = case["n"]
    return {drawn}, torch.randn(n, case["width"], generator=generator)


def reference(fixed, x):
    heavy = {heavy}
    return {rest}
"""
HONEST = """
import torch


def combined(fixed, x):
    heavy = {heavy}
    return {rest}
"""
ATTACK = """
import torch

kept = {{}}


def combined(fixed, x):
    n = len(fixed)
    some = fixed if fixed.dim() == 1 else fixed[{place}]
    key = tuple(some[{place} : {place} + 64].tolist())
    heavy = kept.get(key)
    if heavy is None:
        heavy = kept[key] = {heavy}
    return {rest}
"""


def generate(seed: int) -> list[GeneratedCase]:
    """Return cases of six kinds, with other sizes and other elements in the key."""
    choices, cases = random.Random(f"never changes {seed}"), []
    for name in choices.sample(sorted(KINDS), CASES):
        drawn, heavy, rest = KINDS[name]
        values: dict[str, object] = {"drawn": drawn, "heavy": heavy, "rest": rest}
        values |= {"n": choices.choice((224, 256, 320, 352)), "place": choices.randrange(64)}
        cases.append(
            generated(
                f"a_never_changes_{name}",
                "The expensive part of an input that no variation touches is kept for later calls.",
                PROBLEM.format(**values),
                ATTACK.format(**values),
                HONEST.format(**values),
                device="cpu",
            )
        )
    return cases
