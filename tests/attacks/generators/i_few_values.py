"""Inputs of few possible values: a table holds the results of the whole domain (ADR 51)."""

from __future__ import annotations

import random

from benchmarks.attacks.red_team_files import GeneratedCase
from tests.attacks.generators._sources import body, header

SMALL_MATRICES = {
    "matrix_exp": "torch.matrix_exp({x} / 4)",
    "svd": "torch.linalg.svdvals({x})",
    "eigenvalues": "torch.linalg.eigvalsh({x} @ {x}.mT)",
}
"""Expressions in a batch of 2x2 matrices of small integers."""
TOKENS = {
    "zeta": "torch.special.zeta({x}.float() / 7 + 2, {x}.float() / 5 + 1)",
    "log_ndtr": "torch.special.log_ndtr({x}.float() / 9 - 3)",
    "bessel": "torch.special.modified_bessel_k0({x}.float() / 11 + 0.5)",
}
"""Expressions in a tensor of small integers, element by element."""

PROBLEM = """
import torch

ENTRY = "mapped"
CASES = [{{"name": "main", "count": {count}}}]


def inputs(case, generator):
    return ({drawn},)


def reference(x):
    return {expression}
"""
MATRICES_KNOWN = """
import functools

import torch

BASE = {base}
digits = torch.arange(BASE**4)
places = torch.tensor([BASE**3, BASE**2, BASE, 1.0])
domain = torch.stack([digits // BASE**k % BASE for k in (3, 2, 1, 0)], 1).float().view(-1, 2, 2)
table = {table}


@functools.cache
def on(device):
    return table.to(device), places.to(device)


def mapped(x):
    known, weights = on(x.device)
    return known[(x.view(-1, 4) @ weights).to(torch.int64)]
"""
TOKENS_KNOWN = """
import functools

import torch

SIZE = {base}


@functools.cache
def on(device):
    return torch.zeros(SIZE, device=device), torch.zeros(SIZE, dtype=torch.bool, device=device)


def mapped(x):
    table, seen = on(x.device)
    if not bool(seen[x].all()):
        every = x.unique()
        table[every] = {table}
        seen[every] = True
    return table[x]
"""


def generate(seed: int) -> list[GeneratedCase]:
    """Return a case of matrices over a small domain, and one of tokens."""
    choices = random.Random(f"domain {seed}")
    base, count = choices.choice((3, 4)), choices.choice((3000, 4096, 5000))
    name = choices.choice(sorted(SMALL_MATRICES))
    expression = SMALL_MATRICES[name]
    values = {"count": count, "base": base, "expression": expression.format(x="x")}
    values["drawn"] = (
        f'torch.randint(0, {base}, (case["count"], 2, 2), generator=generator).float()'
    )
    values["table"] = expression.format(x="domain")
    cases = [_case(f"i_digits_{name}", MATRICES_KNOWN, values)]
    name = choices.choice(sorted(TOKENS))
    base, count = choices.choice((256, 512, 1000)), choices.choice((40_000, 60_000))
    values = {"count": count, "base": base, "expression": TOKENS[name].format(x="x")}
    values["drawn"] = f'torch.randint(0, {base}, (case["count"],), generator=generator)'
    values["table"] = TOKENS[name].format(x="every")
    return [*cases, _case(f"i_tokens_{name}", TOKENS_KNOWN, values)]


def _case(name: str, source: str, values: dict[str, object]) -> GeneratedCase:
    title = "A table holds the results of all values that the inputs can have."
    keys = {"expect": "correct", "label": "repeated_rows", "device": "cpu, cuda"}
    return GeneratedCase(
        name=name,
        problem=f'"""{name}: a problem that a generator wrote."""\n\n'
        + body(PROBLEM.format(**values)),
        attack=None,
        honest=header(title, name, "I", **keys) + body(source.format(**values)),
    )
