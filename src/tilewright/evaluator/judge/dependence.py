"""Whether the outputs of a reference depend on its inputs at all."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

import torch

from tilewright.evaluator.judge import argument_trees as trees
from tilewright.evaluator.judge import degenerate_answers, weights
from tilewright.evaluator.judge import reference as refs
from tilewright.evaluator.judge.float64_oracle import run_double
from tilewright.evaluator.judge.number_formats import same_values
from tilewright.evaluator.judge.random_seeds import has_sampled
from tilewright.evaluator.judge.reference import ProblemFailure, Reference
from tilewright.wire.frames import Fields

LOOKED_AT = 1 << 16
"""Elements of a tensor that a cheap comparison looks at."""
REMAINS = 1e-3
"""Share of a difference that remains in float64 if the inputs cause it. Rounding errors of float32
are 2^29 times those of float64, so that nothing of them remains."""
ROUNDING = 0.25
"""Error of the reference, as a share of its output's root mean square, from which on the output may
be nothing but rounding errors."""
SMALL_BYTES = 2 << 20
"""Bytes of inputs above which the check takes `Effort.LARGE`: a float64 call takes a second."""
WEIGHTS_LIMIT_S = 120.0
"""Seconds after which no further weights are tried; the problem then counts as one that depends on
some inputs."""


@dataclass(frozen=True)
class Effort:
    """How much is tried before outputs count as constant."""

    seeds: int
    """Input samples of the problem's own generator."""
    variants: int
    """Changes of the first sample."""
    weights: int
    """Sets of weights, the loaded ones among them."""


SMALL, LARGE = Effort(seeds=4, variants=6, weights=3), Effort(seeds=2, variants=3, weights=2)


@dataclass
class Evaluated:
    """Inputs, and the outputs at the problem's precision."""

    args: list[Any]
    seed: int
    values: list[torch.Tensor]

    def in_float64(self, reference: Reference) -> list[torch.Tensor] | None:
        """Return the outputs in float64; `None`: the reference cannot, or would be too slow."""
        return run_double(reference, self.args, [], self.seed)


def sampled(value: torch.Tensor) -> torch.Tensor:
    """Return some elements in float64, at an odd distance, which is no multiple of a row."""
    flat = value.detach().reshape(-1)
    step = max(-(-flat.numel() // LOOKED_AT), 1) | 1
    part = flat[::step] if flat.numel() > LOOKED_AT else flat
    return torch.view_as_real(part).double().reshape(-1) if part.is_complex() else part.double()


def size_of(args: list[Any]) -> int:
    """Return the bytes of the tensors among some arguments."""
    return sum(value.numel() * value.element_size() for value in trees.tensors(args))


def is_rounding(value: torch.Tensor, oracle: torch.Tensor) -> bool:
    """Tell whether an output is nothing but rounding errors, by its values in float64."""
    if value.shape != oracle.shape or value.numel() == 0:
        return False
    ours, exact = sampled(value), sampled(oracle)
    size = float(ours.square().mean().sqrt())
    return float((ours - exact).square().mean().sqrt()) > ROUNDING * size


def depends_on_inputs(
    reference: Reference, params: Fields, seed: int, args: list[Any], *, redraw: bool
) -> tuple[bool, bool]:
    """Tell whether any output depends on the inputs: on the problem's own, and on any.

    It tries changes of the inputs `args`, and with `redraw` other samples, with the loaded weights
    and with new ones. A difference counts unless it vanishes in float64. An output that cannot be
    computed shows none. A reference that samples random numbers counts as dependent: it has other
    rules.
    """
    if _is_random(reference, args):
        return True, True
    effort = SMALL if size_of(args) <= SMALL_BYTES else LARGE
    if not redraw:
        effort = replace(effort, seeds=1)
    until, changes = time.monotonic() + WEIGHTS_LIMIT_S, False
    for turn in range(effort.weights if reference.model is not None else 1):
        if time.monotonic() > until:
            return False, True
        with _weights(reference, seed, turn):
            reference.precision.double = None
            own, any_input = _dependence(reference, params, seed, args, effort)
        reference.precision.double = None
        if own:
            return True, True
        changes |= any_input
    return False, changes


def _is_random(reference: Reference, args: list[Any]) -> bool:
    """Tell whether outputs differ between two forward seeds, or between two equal calls."""
    base = _evaluated(reference, args)
    for seed in (2, 3, 4, 1):
        again = _evaluated(reference, args, seed)
        sampled_any = has_sampled(reference.device, seed)
        if base is None or _moved(reference, base, again):
            return True
        if not sampled_any:
            break
    return False


def _weights(reference: Reference, seed: int, turn: int) -> AbstractContextManager[None]:
    """Load new weights for a while; the first time those that are there."""
    model = reference.model
    if model is None:
        return nullcontext()
    fresh = {} if turn == 0 else weights.resample(model, seed + turn)
    return degenerate_answers.loaded(model, fresh)


def _dependence(
    reference: Reference, params: Fields, seed: int, args: list[Any], effort: Effort
) -> tuple[bool, bool]:
    base = _evaluated(reference, args)
    if base is None:
        return True, True
    for number in range(1, effort.seeds):
        if _moved(
            reference, base, _evaluated(reference, reference.arguments(params, seed + number))
        ):
            return True, True
    others = islice(variants(args, seed), effort.variants)
    return False, any(_moved(reference, base, _evaluated(reference, o)) for o in others)


def _evaluated(reference: Reference, args: list[Any], seed: int = 1) -> Evaluated | None:
    """Return the outputs; `None`: the reference fails on these inputs."""
    try:
        values, _ = refs.run(reference, args, [], seed)
    except ProblemFailure:
        return None
    return Evaluated(args, seed, values)


def _moved(reference: Reference, base: Evaluated, other: Evaluated | None) -> bool:
    """Tell whether outputs differ by more than rounding errors; infinities and NaN do not count."""
    if other is None:
        return False
    if [value.shape for value in base.values] != [value.shape for value in other.values]:
        return True
    pairs = zip(base.values, other.values, strict=True)
    gaps = [_difference(one, two) for one, two in pairs]
    if not any(gaps):
        return False
    kinds = [value.is_floating_point() for value in base.values]
    if any(gap and not floating for gap, floating in zip(gaps, kinds, strict=True)):
        return True
    ones, others = base.in_float64(reference), other.in_float64(reference)
    if ones is None or others is None:
        return True
    exact = [_difference(one, two) for one, two in zip(ones, others, strict=True)]
    return any(remains > REMAINS * gap for remains, gap in zip(exact, gaps, strict=True) if gap)


def _difference(one: torch.Tensor, other: torch.Tensor) -> float:
    """Return the largest difference of elements that are finite in both."""
    if one.shape != other.shape:
        return float("inf")
    if one.numel() == 0 or same_values(one, other):
        return 0.0
    kind = torch.complex128 if one.is_complex() else torch.float64
    gap = (one.to(kind) - other.to(kind)).abs()
    gap = gap[torch.isfinite(gap)]
    return float(gap.max()) if gap.numel() else 0.0


def variants(args: list[Any], seed: int) -> Iterator[list[Any]]:
    """Yield inputs with other values, also where the judge's own variations keep a structure."""
    device = next((value.device for value in trees.tensors(args)), torch.device("cpu"))
    generator = torch.Generator(device).manual_seed(seed)

    def normal(value: torch.Tensor) -> torch.Tensor:
        return torch.randn(value.shape, generator=generator, device=value.device)

    changes: tuple[Callable[[torch.Tensor], torch.Tensor], ...] = (
        normal,
        lambda value: value * 64,
        lambda value: -value,
        lambda value: value / 64,
        lambda value: value + 4,
        lambda value: 100 * normal(value),
    )
    for change in changes:
        yield trees.mapped(args, partial(_changed, change))


def _changed(change: Callable[[torch.Tensor], torch.Tensor], value: torch.Tensor) -> torch.Tensor:
    """Return a floating-point tensor changed, and the elements of another one in another order."""
    if value.is_floating_point():
        return change(value.float()).to(value.dtype)
    return value.reshape(-1).roll(1).reshape(value.shape)
