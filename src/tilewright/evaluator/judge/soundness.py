"""The check of a problem by its first evaluation: its generator, and answers that do no work.

It is cheaper than the linter: it compares a part of two samples first. Only an answer that looks
right there is compared by the rules, on every input variation.
"""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from tilewright.evaluator.judge import argument_trees as trees
from tilewright.evaluator.judge import degenerate_answers, weights
from tilewright.evaluator.judge import reference as refs
from tilewright.evaluator.judge.comparison import Expected, expect
from tilewright.evaluator.judge.degenerate_answers import WEIGHTS_SEED, Outputs, PassingRules
from tilewright.evaluator.judge.dependence import (
    depends_on_inputs,
    is_rounding,
    sampled,
    size_of,
    variants,
)
from tilewright.evaluator.judge.float64_oracle import run_double
from tilewright.evaluator.judge.number_formats import is_inexact, parts, same_values
from tilewright.evaluator.judge.reference import ProblemFailure, Reference
from tilewright.evaluator.judge.reference_state import undisturbed
from tilewright.evaluator.judge.repeated_rows import different_rows
from tilewright.evaluator.judge.tf32_products import has_products
from tilewright.evaluator.judge.undefined_elements import defined_elements, undefined_share
from tilewright.evaluator.judge.variations import is_mask
from tilewright.evaluator.judge_client.messages import ComparisonRule
from tilewright.evaluator.judge_client.problem_messages import CheckHealth, HealthAnswer

LONG_S = 5.0
"""Seconds of one input sample from which on no second one is made."""
KEPT_BYTES = 64 << 20
"""Bytes of inputs up to which a sample is copied, so that a later one cannot overwrite it."""
PLAIN_ERROR = 0.25
"""Error from which on an element is plainly wrong, as a share of it and of the output's root mean
square. The largest tolerance, that of bfloat16, is half of this."""
PLAIN_SHARE = 0.01
"""Share of plainly wrong elements from which on an answer is wrong: ten times what may exceed the
tolerance."""
MOVED = 0.01
"""Difference of two outputs, as a share of their root mean square, that shows a dependence."""
REFERENCE_ERRORS = 5.0
"""Errors of the reference itself by which a right answer may be off; the tolerance has four."""
CONSTANT = "one constant on the problem's own inputs"
"""The answer that passes where only varied inputs change the output."""


@dataclass
class CheckedSample:
    """Inputs of one seed, and the reference's outputs on them."""

    args: list[Any]
    expected: list[Expected] = field(default_factory=list)

    def arguments(self) -> list[Any]:
        """Return the inputs."""
        return self.args

    def grad_outputs(self) -> list[torch.Tensor]:
        """Return no gradients: those of ones are as good here."""
        return []

    rounding: bool = False
    """Whether an output is nothing but rounding errors, by its values in float64."""

    def evaluate(self, reference: Reference, *, double: bool) -> None:
        """Compute the outputs, and with `double` their errors."""
        values, _ = refs.run(reference, self.args, [], 1)
        oracles = run_double(reference, self.args, [], 1) if double else None
        if oracles is None or [o.shape for o in oracles] != [v.shape for v in values]:
            self.expected = [Expected(value, None, 0.0) for value in values]
            return
        self.expected = list(map(expect, values, oracles))
        floating = [v.is_floating_point() for v in values]
        self.rounding = all(floating) and all(map(is_rounding, values, oracles))

    def undefined_share(self, reference: Reference) -> float:
        """Return which share of the output elements the reference leaves undefined."""
        values = [item.value for item in self.expected]
        return undefined_share(defined_elements(reference, self.args, [], 1, values), values)


def check(reference: Reference, message: CheckHealth, rule: ComparisonRule | None) -> HealthAnswer:
    """Look at one case. It leaves the reference as it was.

    Raises:
        ProblemFailure: the generator or the reference fails, or the generator fails the second
            time.
    """
    model = reference.model
    fresh = {} if model is None or not message.strict else weights.resample(model, WEIGHTS_SEED)
    loaded = nullcontext() if model is None else degenerate_answers.loaded(model, fresh)
    with undisturbed(reference), loaded:
        reference.precision.double, reference.random = None, None
        answer = _checked(reference, message, rule)
        mode = reference.modes.on_cpu
        if mode is None:
            return answer
        return replace(answer, cuda_use=(mode.used, mode.used_by_reference))


def _checked(
    reference: Reference, message: CheckHealth, rule: ComparisonRule | None
) -> HealthAnswer:
    start = time.monotonic()
    first = CheckedSample(reference.arguments(message.params, message.seed))
    answer = HealthAnswer(sample_s=time.monotonic() - start)
    try:
        first.evaluate(reference, double=rule is None)
        answer = replace(answer, tf32=may_use_tf32(reference, first))
        answer, second = _generator(reference, message, first, answer)
        redraw = second is not None
        second = second or CheckedSample(next(variants(first.args, message.seed)))
        second.evaluate(reference, double=False)
        own, varied = _dependence(reference, message, first, second, redraw=redraw)
        # On outputs that are all alike, no variation shows more than one sample.
        quickly = not (message.strict and redraw and varied)
        passing, anywhere = _passing(reference, message, rule, first, second, quickly=quickly)
        if varied and not own:
            passing.append(CONSTANT)
        passing = [name for name in passing if name not in anywhere]
        rows = _repeated_rows(first, second) if redraw and own else None
        found = replace(answer, passing=anywhere, passing_own_inputs=passing, rows=rows)
        undefined = 0.0 if reference.random else first.undefined_share(reference)
        outside = reference.modes.writes_outside(lambda: refs.run(reference, first.args, [], 1))
        found = replace(found, writes_outside=outside)
        return replace(found, constant=not varied, undefined_share=undefined)
    except torch.OutOfMemoryError:
        text = "answers without work: the device has too little memory"
        return replace(answer, unchecked=text)


def may_use_tf32(reference: Reference, sample: CheckedSample) -> bool:
    """Tell whether implementations may round products to tf32, as far as this sample shows.

    Without a product the tolerance has no room for tf32, so a candidate must not get it either.
    An honest product in place of a Fourier transform was refused for a flag that we had set.
    """
    return not reference.precision.allows_tf32 or has_products(reference, sample.args)


def _generator(
    reference: Reference, message: CheckHealth, first: CheckedSample, answer: HealthAnswer
) -> tuple[HealthAnswer, CheckedSample | None]:
    """Make a sample under another seed and one under the same seed, and compare.

    Returns no second sample if the generator is slow, or if its samples differ in shape.
    """
    if answer.sample_s > LONG_S:
        return answer, None
    taken, before = first.args, _fingerprint(first.args)
    if size_of(taken) <= KEPT_BYTES:
        first.args = trees.copied(taken)
    try:
        second = CheckedSample(reference.arguments(message.params, message.seed + 1))
        other, overwritten = _fingerprint(second.args), not _equal(before, _fingerprint(taken))
        shared = bool(_memory(taken) & _memory(second.args))
        if size_of(taken) <= KEPT_BYTES:
            second.args = trees.copied(second.args)
        again = _fingerprint(reference.arguments(message.params, message.seed))
    except ProblemFailure as error:
        text = f"its generator of inputs cannot be run twice: {error}"
        raise ProblemFailure(text, out_of_memory=error.out_of_memory) from error
    shapes_vary = _forms(before) != _forms(other)
    differ = shapes_vary or not _equal(before, other)
    found = replace(
        answer,
        ignores_seed=bool(before) and not differ,
        repeatable=_equal(before, again),
        shapes_vary=shapes_vary,
        shares_memory=overwritten or (shared and differ),
        constant_inputs=_constant_inputs(first.args, second.args),
    )
    return found, None if shapes_vary else second


def _passing(
    reference: Reference,
    message: CheckHealth,
    rule: ComparisonRule | None,
    first: CheckedSample,
    second: CheckedSample,
    *,
    quickly: bool,
) -> tuple[list[str], list[str]]:
    """Return the answers without work that pass on the problem's own inputs, and on varied ones.

    Those that look right are compared by the rules. It looks at the first sample only, if
    `quickly`, and otherwise at all variations.
    """
    answers = degenerate_answers.answers(first, second)
    answers |= degenerate_answers.skipping(reference, first)
    likely = [
        name
        for name, outputs in answers.items()
        if rule is not None or _looks_right(first.expected, outputs)
    ]
    if quickly:
        passed = sorted(n for n in likely if degenerate_answers.passes(first, answers[n], rule))
        return passed, passed
    if not likely:
        return [], []
    rules = PassingRules(message.variations, (message.seed, message.seed + 1), rule)
    own, anywhere = degenerate_answers.passing(reference, message.params, rules)
    return own, anywhere


def _dependence(
    reference: Reference,
    message: CheckHealth,
    first: CheckedSample,
    second: CheckedSample,
    *,
    redraw: bool,
) -> tuple[bool, bool]:
    """Tell whether the outputs depend on the problem's own inputs, and whether on any inputs."""
    ones, others = ([item.value for item in taken.expected] for taken in (first, second))
    if _plainly_moved(ones, others) and not first.rounding:
        return True, True
    given = (message.params, message.seed, first.args)
    return depends_on_inputs(reference, *given, redraw=redraw)


def _repeated_rows(first: CheckedSample, second: CheckedSample) -> tuple[int, int] | None:
    return different_rows(first.args, second.args, [item.value for item in first.expected])


def _plainly_moved(ones: Outputs, others: Outputs) -> bool:
    """Tell whether many elements of some output differ by more than any rounding."""
    for one, other in zip(ones, others, strict=True):
        if one.shape != other.shape:
            return True
        a, b, size = sampled(one), sampled(other), _rms(one)
        if size == 0.0 and one.is_floating_point():
            # Beside zeros even a rounding error is large.
            continue
        moved = (a - b).abs() > MOVED * size
        if a.numel() and float(moved.double().mean()) > PLAIN_SHARE:
            return True
    return False


def _looks_right(expected: list[Expected], outputs: Outputs) -> bool:
    """Tell whether an answer may pass, by a part of its elements."""
    for item, output in zip(expected, outputs, strict=True):
        want, got = sampled(item.value), sampled(output)
        if want.numel() == 0:
            continue
        size = want.abs().clamp_min(_rms(item.value)) if item.value.is_floating_point() else 0.0
        allowed = PLAIN_ERROR * size + REFERENCE_ERRORS * item.reference_error
        wrong = ~((got - want).abs() <= allowed) & torch.isfinite(want)
        if float(wrong.double().mean()) > PLAIN_SHARE:
            return False
    return True


def _rms(value: torch.Tensor) -> float:
    part = sampled(value)
    part = part[torch.isfinite(part)]
    return float(part.square().mean().sqrt()) if part.numel() else 0.0


def _memory(args: list[Any]) -> set[int]:
    """Return where the storages of tensors begin; empty ones lie nowhere."""
    strided = [value for value in trees.tensors(args) if value.layout == torch.strided]
    return {value.untyped_storage().data_ptr() for value in strided} - {0}


def _constant_inputs(first: list[Any], second: list[Any]) -> list[int]:
    """Return the arguments that two seeds make alike, and whose values timed calls keep too."""
    return [
        index
        for index, (one, other) in enumerate(zip(first, second, strict=False))
        if isinstance(one, torch.Tensor)
        and isinstance(other, torch.Tensor)
        and one.layout == torch.strided
        and one.numel() > 1
        and same_values(one, other)
        and (not is_inexact(one) or is_mask(parts(one).float()))
    ]


Fingerprint = list[tuple[tuple[Any, ...], torch.Tensor]]
"""Form, and a copy of some elements, of each tensor."""


def _fingerprint(args: list[Any]) -> Fingerprint:
    return [
        ((value.dtype, value.shape, value.stride()), sampled(value).clone())
        for value in trees.tensors(args)
        if value.layout == torch.strided
    ]


def _forms(prints: Fingerprint) -> list[tuple[Any, ...]]:
    return [form for form, _ in prints]


def _equal(one: Fingerprint, other: Fingerprint) -> bool:
    return _forms(one) == _forms(other) and all(
        bool(((a == b) | ((a != a) & (b != b))).all())
        for (_, a), (_, b) in zip(one, other, strict=True)
    )
