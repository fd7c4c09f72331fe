"""Functions of an element or a short row: earlier results move as the inputs moved."""

from __future__ import annotations

import random

from benchmarks.attacks.red_team_files import GeneratedCase
from tests.attacks.generators._sources import generated

ELEMENTWISE = {
    "zeta": ("torch.special.zeta(x + 1, x)", 4),
    "log_ndtr": ("torch.special.log_ndtr(x)", 32),
    "erfcx": ("torch.special.erfcx(x)", 32),
    "gammainc": ("torch.special.gammainc(x, x)", 16),
    "bessel_k": ("torch.special.modified_bessel_k0(x)", 32),
    "bessel_i": ("torch.special.i0(x)", 32),
}
"""Expressions in a positive `x`, and the rows of 1024 elements that make calls of milliseconds."""
SMALL_MATRICES = {
    "matrix_exp": "torch.matrix_exp(x)",
    "svd": "torch.linalg.svdvals(x)",
    "inverse": "torch.linalg.pinv(x)",
    "eigenvalues": "torch.linalg.eigvalsh(x @ x.mT)",
    "triangular": "torch.linalg.qr(x)[1].abs()",
}
"""Expressions in a batch `x` of small, well-conditioned matrices."""

PROBLEM = """
import torch

ENTRY = "mapped"
CASES = [{{"name": "main", "count": {count}, "width": {width}}}]
VARY = {{"contents": ["heavy_tail"]}}


def inputs(case, generator):
    {inputs}


def reference(x):
    return {expression}
"""
HONEST = """
import torch


def mapped(x):
    return {expression}
"""
ELEMENTS_MOVE = """
import numpy as np
import torch

ROW = {row}
samples = []


def computed(x):
    return {expression}


def shifted(values, columns, by):
    moved = values.clone()
    moved[:, columns:] = values.roll(-1, 0)[:, columns:]
    return moved.flatten().roll(by).view(values.shape)


def follow(x, old, results):
    flat, cols = x.flatten(), x.shape[1]
    found = flat.numpy() == old[ROW, 0].item()
    place = int(np.argmax(found))
    if not found[place]:
        return None
    by = place - ROW * cols
    there = flat[torch.arange(place, place + cols) % flat.numel()]
    differs = (there != old[ROW]).numpy()
    columns = int(np.argmax(differs)) if differs.any() else cols
    expected, answer = shifted(old, columns, by), shifted(results, columns, by)
    wrong = np.flatnonzero((expected != x).numpy())
    if len(wrong) > 256:
        return None
    if len(wrong):
        index = torch.from_numpy(wrong)
        answer.view(-1)[index] = computed(flat[index])
    return answer


def mapped(x):
    for sample in samples:
        answer = follow(x, *sample)
        if answer is not None:
            sample[:] = [x.clone(), answer]
            return answer.clone()
    answer = computed(x)
    samples.append([x.clone(), answer])
    del samples[:-4]
    return answer.clone()
"""
ROWS_MOVE = """
import numpy as np
import torch

PLACE = {row}
samples = []


def computed(x):
    return {expression}


def follow(x, old, results):
    found = x[:, 0, 0].numpy() == old[PLACE, 0, 0].item()
    place = int(np.argmax(found))
    if not found[place]:
        return None
    by = place - PLACE
    answer = results.roll(by, 0)
    wrong = np.flatnonzero((old.roll(by, 0) != x).numpy()) // x[0].numel()
    if len(wrong) > 64:
        return None
    if len(wrong):
        index = torch.from_numpy(np.unique(wrong))
        answer[index] = computed(x[index])
    return answer


def mapped(x):
    for sample in samples:
        answer = follow(x, *sample)
        if answer is not None:
            sample[:] = [x.clone(), answer]
            return answer.clone()
    answer = computed(x)
    samples.append([x.clone(), answer])
    del samples[:-4]
    return answer.clone()
"""


def generate(seed: int) -> list[GeneratedCase]:
    """Return three element-wise cases, and three of small matrices."""
    choices, cases = random.Random(f"moved {seed}"), []
    drawn = 'return (torch.rand(case["count"], case["width"], generator=generator) * 2 + 1,)'
    for name in choices.sample(sorted(ELEMENTWISE), 3):
        expression, rows = ELEMENTWISE[name]
        values = {"expression": expression, "row": choices.randrange(rows)}
        values |= {"count": rows, "width": 1024, "inputs": drawn}
        cases.append(_case(f"a_moved_{name}", ELEMENTS_MOVE, values))
    for name in choices.sample(sorted(SMALL_MATRICES), 3):
        width, count = choices.choice((3, 4, 5)), choices.choice((1500, 2000, 3000))
        drawn = (
            'width = case["width"]\n'
            '    x = torch.randn(case["count"], width, width, generator=generator)\n'
            "    return (x * 0.3 + torch.eye(width),)"
        )
        values = {"expression": SMALL_MATRICES[name], "row": choices.randrange(count)}
        values |= {"count": count, "width": width, "inputs": drawn}
        cases.append(_case(f"a_short_rows_{name}", ROWS_MOVE, values))
    return cases


def _case(name: str, attack: str, values: dict[str, object]) -> GeneratedCase:
    return generated(
        name,
        "The shift of the inputs is found, and the earlier results are shifted as far.",
        PROBLEM.format(**values),
        attack.format(**values),
        HONEST.format(**values),
        device="cpu",
    )
