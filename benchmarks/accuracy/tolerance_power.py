"""Bars: no honest implementation is refused, and half of a reduction that is left out is found.

`python -m benchmarks --only tolerance` compares named implementations with references of the same
precision, on the judge's own samples, without a process for each. `python -m
benchmarks.accuracy.tolerance_power` also prints the largest ratio of each implementation.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from benchmarks.accuracy.honest_implementations import FUNCTIONS, Function, Implementation, wide
from benchmarks.bars import Bar, finish
from tilewright.evaluator.judge.comparison import (
    Mismatch,
    compare,
    expect,
    with_sensitivity,
)
from tilewright.evaluator.judge.variations import vary
from tilewright.wire.names import INPUT_VARIATIONS

Tensor = torch.Tensor
COMPARISONS = 6000
"""Comparisons of honest implementations with their references."""
SHAPES = ((4, 64), (64, 64), (33, 257), (128, 512), (16, 2048))
UNSUITABLE = ("scale_down", "below_half_range", "above_half_range")
"""Variations that the judge makes for some references only, or in a weaker form."""
LENGTHS = (256, 1024, 4096, 16384, 65536)
OUTPUTS, FEW_OUTPUTS = 64, 4
EVALUATIONS = 4
"""Evaluations of each reduction, length and way of leaving half of it out."""
SAMPLES_OF_FEW = 16
"""Samples where there are fewer outputs than `OUTPUTS`."""
POWER = 0.99
REDUCTIONS: dict[str, Function] = {
    "sum": lambda x: x.sum(-1),
    "mean": lambda x: x.mean(-1),
    "mean of sizes": lambda x: x.abs().mean(-1),
    "mean square": lambda x: x.square().mean(-1),
    "norm": lambda x: x.square().sum(-1).sqrt(),
    "logsumexp": lambda x: torch.logsumexp(x, -1),
    "variance": lambda x: x.var(-1),
}
RESCALED = {"sum": 2.0, "norm": 2.0**0.5}
"""Factor by which half of a reduction is made like the whole."""


@dataclass(frozen=True)
class Refusal:
    """An honest implementation that was refused."""

    name: str
    kind: str
    shape: tuple[int, ...]
    variation: str
    message: str


def sample(shape: tuple[int, ...], kind: torch.dtype, variation: str, seed: int) -> Tensor:
    """Return one input as the judge makes it."""
    x = torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(kind)
    return vary(x, variation, torch.Generator().manual_seed(seed + 1))


def judged(reference: Function, answer: Function, x: Tensor) -> Mismatch | None:
    """Compare an answer with a reference; `None`: the reference cannot judge here."""
    value, oracle = reference(x), reference(x.double())
    expected = expect(value, oracle)
    rms = float(oracle.square().mean().sqrt())
    if not bool(torch.isfinite(value).all()) or expected.reference_error > 1e-2 * rms:
        return None
    output = answer(x)
    found = compare(expected, output)
    if found.kind != "values":
        return found
    # As the judge does before it refuses: by how much does rounding of the inputs move the oracle?
    signs = torch.randint(0, 2, x.shape, generator=torch.Generator().manual_seed(1)) * 2.0 - 1
    nudged = x.double() * (1 + torch.finfo(x.dtype).eps * signs)
    return compare(with_sensitivity(expected, (reference(nudged) - oracle).abs()), output)


def honest(count: int) -> tuple[int, list[Refusal], dict[str, float]]:
    """Compare implementations with their references; return how many, and the refused ones."""
    done, refused, largest = 0, list[Refusal](), dict[str, float]()
    names = [name for name in INPUT_VARIATIONS if name not in UNSUITABLE]
    for number, (item, kind, shape) in enumerate(_cycle()):
        variation = names[number % len(names)]
        found = judged(item.reference, item.answer, sample(shape, kind, variation, number))
        if found is None:
            continue
        done += 1
        name = f"{item.name} {str(kind).removeprefix('torch.')}"
        largest[name] = max(largest.get(name, 0.0), found.error_over_tolerance or 0.0)
        if found.kind:
            refused.append(Refusal(item.name, str(kind), shape, variation, found.message))
        if done == count:
            break
    return done, refused, largest


def _cycle() -> Iterator[tuple[Implementation, torch.dtype, tuple[int, ...]]]:
    while True:
        for shape in SHAPES:
            for item in FUNCTIONS:
                for kind in item.kinds:
                    yield item, kind, shape


def halves(length: int, seed: int) -> dict[str, Tensor]:
    """Return ways of choosing half of the elements of a reduction."""
    places = torch.arange(length)
    order = torch.randperm(length, generator=torch.Generator().manual_seed(seed))
    return {
        "first half": places[: length // 2],
        "second half": places[length // 2 :],
        "every second": places[::2],
        "random half": order[: length // 2],
    }


def found_in_evaluation(name: str, length: int, way: str, outputs: int, seed: int) -> bool:
    """Tell whether one of the samples of an evaluation shows that half was left out."""
    reference = wide(REDUCTIONS[name])
    chosen, factor = halves(length, seed)[way], RESCALED.get(name, 1.0)
    samples = [*INPUT_VARIATIONS]
    if outputs < OUTPUTS:
        samples += ["uneven_parts", "nominal"] * ((SAMPLES_OF_FEW - len(samples)) // 2 + 1)
    for place, variation in enumerate(samples):
        if variation in UNSUITABLE:
            continue
        x = sample((outputs, length), torch.bfloat16, variation, seed * 100 + place)
        half: Callable[[Tensor], Tensor] = wide(lambda v: REDUCTIONS[name](v[:, chosen]) * factor)
        result = judged(reference, half, x)
        if result is not None and result.kind:
            return True
    return False


def power(outputs: int) -> tuple[int, int, list[str]]:
    """Return how many of how many evaluations find that half was left out, and the others."""
    found, total, missed = 0, 0, list[str]()
    for length in LENGTHS:
        for name in REDUCTIONS:
            for way in halves(8, 0):
                for seed in range(EVALUATIONS):
                    total += 1
                    if found_in_evaluation(name, length, way, outputs, seed + 1):
                        found += 1
                    else:
                        missed.append(f"{name} of {length}, {way}, {outputs} outputs")
    return found, total, missed


def run(only: str = "") -> list[Bar]:
    """Measure both bars; `only` is not used."""
    del only
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    done, refused, largest = honest(COMPARISONS)
    bars = [
        Bar(
            "tolerance: honest implementations refused",
            f"0 of {COMPARISONS}",
            f"{len(refused)} of {done}",
            not refused and done == COMPARISONS,
            {"refused": [vars(item) for item in refused[:40]], "largest": largest},
        )
    ]
    for outputs in (OUTPUTS, FEW_OUTPUTS):
        found, total, missed = power(outputs)
        bars.append(
            Bar(
                f"tolerance: half of a bf16 reduction left out, {outputs} outputs",
                f"at least {POWER:.0%} found",
                f"{found} of {total}",
                found >= POWER * total,
                {"missed": missed},
            )
        )
    torch.set_num_threads(threads)
    return bars


if __name__ == "__main__":
    measured = run()
    for key, ratio in sorted(measured[0].details["largest"].items(), key=lambda pair: -pair[1]):
        print(f"{key} | {ratio:.2f}")
    for bar in measured:
        print(bar.details.get("refused", bar.details.get("missed")))
    sys.exit(finish(measured))
