"""Coverage on a GPU: chains of ten kernels, a known number of them the candidate's own."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.bars import Bar, executor
from benchmarks.gpu.requests import request, row
from tilewright.executors.local import LocalExecutor
from tilewright.records import EvalRequest

STEPS = 10
OWN_STEPS = (0, 1, 5, 9, 10)
WITHIN = 0.03
PROBLEM = f"""import torch

CASES = [{{"name": "one", "n": {1 << 25}}}]
ENTRY = "work"


def inputs(case, generator):
    return (torch.randn(case["n"], generator=generator),)


def reference(x):
    for _ in range({STEPS}):
        x = torch.sin(x)
    return x
"""
CHAIN = """import torch
import triton
import triton.language as tl


@triton.jit
def {name}(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.sin(tl.load(x + at, mask=at < n)), mask=at < n)


@triton.jit
def one(y):
    tl.store(y, 1.0)


def step(x):
    y = torch.empty_like(x)
    {name}[(triton.cdiv(x.numel(), 4096),)](x, y, x.numel(), BLOCK=4096)
    return y


def {library}(x):
    return torch.sin(x)


def work(x):
    if {own} == 0:
        # What it launches itself takes next to nothing, and yet the outputs need it.
        first = torch.empty((), device=x.device)
        one[(1,)](first)
        x = torch.mul(x, first, out=torch.empty_like(x))
    for place in range({steps}):
        x = step(x) if place < {own} else {library}(x)
    return x
"""


def run(out: Path) -> list[Bar]:
    """Judge each mix, and the same with names that lie."""
    rows, bars = [], []
    with executor() as local:
        library_us, own_us = _steps_us(local)
        for own in OWN_STEPS:
            text = CHAIN.format(own=own, steps=STEPS, name="mine", library="theirs")
            found = row(f"{own} of {STEPS}", local.evaluate(_asked(text, f"{own}")))
            whole = own * own_us + (STEPS - own + (own == 0)) * library_us
            rows.append({**found, "built": own * own_us / whole})
            bars.append(_bar(rows[-1]))
        for own in (0, 5, 10):
            names = {"name": "vectorized_elementwise_kernel", "library": "triton_sin_kernel"}
            text = CHAIN.format(own=own, steps=STEPS, **names)
            plain = next(item for item in rows if item["name"] == f"{own} of {STEPS}")
            found = row(f"{own} of {STEPS}, names lie", local.evaluate(_asked(text, f"lie{own}")))
            rows.append({**found, "built": plain["built"]})
            bars.append(_bar(rows[-1]))
    (out / "gpu_coverage.json").write_text(json.dumps(rows), encoding="utf-8")
    return bars


def _asked(text: str, mark: str) -> EvalRequest:
    return request(PROBLEM, f"{text}# {mark}\n", "chain", language="triton")


def _steps_us(local: LocalExecutor) -> tuple[float, float]:
    """Return the microseconds of a library step and of an own one, by chains of each alone."""
    text = CHAIN.format(own=STEPS, steps=STEPS, name="mine", library="theirs")
    found = local.evaluate(_asked(text, "alone")).comparisons[0]
    return found.baseline_timing.median_us / STEPS, found.candidate.median_us / STEPS


def _bar(found: dict[str, object]) -> Bar:
    built, seen = float(str(found["built"])), found["coverage"]
    held = seen is not None and abs(float(str(seen)) - built) <= WITHIN
    text = f"{found['verdict']}" if seen is None else f"{float(str(seen)):.1%}"
    return Bar(f"coverage: {found['name']}", f"{built:.1%} +- 3 points", text, held)
