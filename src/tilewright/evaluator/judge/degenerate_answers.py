"""Degenerate answers, which do no work, compared with the reference's outputs.

The judge runs them, so no candidate is involved: an answer that ignores its inputs is a tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from tilewright.evaluator.judge import reference as refs
from tilewright.evaluator.judge import weights
from tilewright.evaluator.judge.comparison import Expected, compare
from tilewright.evaluator.judge.inputs import described_outputs, make_sample
from tilewright.evaluator.judge.number_formats import is_inexact, parts, same_values
from tilewright.evaluator.judge.official_comparison import compare_published
from tilewright.evaluator.judge.reference import Reference
from tilewright.evaluator.judge_client.messages import ComparisonRule
from tilewright.evaluator.judge_client.problem_messages import LintAnswer, LintCase
from tilewright.wire.frames import Fields
from tilewright.wire.names import COPIED_INPUT

Outputs = list[torch.Tensor]


class JudgedSample(Protocol):
    """Inputs, and what is expected of them."""

    expected: list[Expected]

    def arguments(self) -> list[Any]:
        """Return the inputs."""
        ...

    def grad_outputs(self) -> Outputs:
        """Return the gradients of the outputs."""
        ...


DegenerateAnswer = Callable[[JudgedSample, JudgedSample], Outputs | None]
"""An answer to the first sample, made from another one's; `None` where there is no such answer."""


@dataclass(frozen=True)
class PassingRules:
    """The rules of a protocol by which answers pass, and the seeds of two samples.

    `comparison` is a published rule of comparison; `None` is ours.
    """

    variations: list[str]
    seeds: tuple[int, int] = (1, 2)
    comparison: ComparisonRule | None = None


def _filled(value: float) -> DegenerateAnswer:
    return lambda sample, _: [torch.full_like(item.value, value) for item in sample.expected]


def _constant(sample: JudgedSample, other: JudgedSample) -> Outputs:
    """Return the mean of another call's output, everywhere."""
    return [
        torch.full_like(mine.value, float(parts(theirs.value).double().mean()))
        # No element has no mean.
        if theirs.value.numel()
        else torch.zeros_like(mine.value)
        for mine, theirs in zip(sample.expected, other.expected, strict=True)
    ]


def _stale(sample: JudgedSample, other: JudgedSample) -> Outputs | None:
    """Return another call's output."""
    values = [item.value for item in other.expected]
    same = all(a.shape == b.value.shape for a, b in zip(values, sample.expected, strict=True))
    return values if same else None


def _copied(sample: JudgedSample, _: JudgedSample) -> Outputs | None:
    """Return the first input that looks like the output."""
    found = []
    inputs = [value for value in sample.arguments() if isinstance(value, torch.Tensor)]
    for item in sample.expected:
        like = [v for v in inputs if v.shape == item.value.shape and v.dtype == item.value.dtype]
        if not like:
            return None
        found.append(like[0])
    return found


ANSWERS: dict[str, DegenerateAnswer] = {
    "zeros": _filled(0.0),
    "ones": _filled(1.0),
    "constant": _constant,
    "another input's output": _stale,
    COPIED_INPUT: _copied,
}


SKIPPED = "skipped parameters"
WEIGHTS_SEED = 3
"""Seed of the new weights, the same for the linter and for the check of a first evaluation, so that
both name the same problems."""


def lint(reference: Reference, message: LintCase) -> LintAnswer:
    """Return which degenerate answers pass, by published rules and strictly.

    Published: seeded weights, nominal inputs, each of the rules. Strict: weights drawn anew, all
    variations, our tolerance; what passes must pass on each.
    """
    nominal = make_sample(reference, message.params, "nominal", 1, 1, double=False)
    other = make_sample(reference, message.params, "nominal", 2, 1, double=False)
    repeated, peak_bytes = _measured(reference, nominal)
    same = [same_values(a, b.value) for a, b in zip(repeated, nominal.expected, strict=True)]
    values = answers(nominal, other) | skipping(reference, nominal)
    official = {
        rule: [key for key, found in values.items() if passes(nominal, found, numbers)]
        for rule, numbers in message.rules.items()
    }
    return LintAnswer(
        official=official,
        strict=_strictly(reference, message.params, message.variations),
        random=nominal.random,
        deterministic=all(same),
        call_s=reference.call_s,
        input_bytes=nominal.size,
        output_bytes=described_outputs(nominal)[1],
        peak_bytes=peak_bytes,
    )


def _measured(reference: Reference, sample: JudgedSample) -> tuple[Outputs, int | None]:
    """Return the outputs of one more call, and on a GPU what it allocated at its peak."""
    args, on_gpu = sample.arguments(), reference.device.type == "cuda"
    before = 0
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
    outputs, _ = refs.run(reference, args, sample.grad_outputs(), 1)
    return outputs, torch.cuda.max_memory_allocated() - before if on_gpu else None


def answers(sample: JudgedSample, other: JudgedSample) -> dict[str, Outputs]:
    """Return the answers that ignore an input, by name."""
    made = {name: answer(sample, other) for name, answer in ANSWERS.items()}
    return {name: values for name, values in made.items() if values is not None}


def skipping(reference: Reference, sample: JudgedSample) -> dict[str, Outputs]:
    """Return the reference's outputs with every parameter zero, if it has parameters."""
    model = reference.model
    if model is None or not any(is_inexact(p) for p in model.parameters()):
        return {}
    zeroed = {name: torch.zeros_like(value) for name, value in model.named_parameters()}
    with loaded(model, zeroed):
        values, _ = refs.run(reference, sample.arguments(), sample.grad_outputs(), 1)
    return {SKIPPED: values}


@contextmanager
def loaded(model: torch.nn.Module, fresh: dict[str, torch.Tensor]) -> Iterator[None]:
    """Give a model other weights for a while; afterwards it has all that it had."""
    kept = {name: value.detach().clone() for name, value in model.state_dict().items()}
    try:
        model.load_state_dict(fresh, strict=False)
        yield
    finally:
        model.load_state_dict(kept)


def passes(sample: JudgedSample, values: Outputs, rule: ComparisonRule | None) -> bool:
    """Tell whether outputs pass by a published rule, or by ours."""
    pairs = [(e, v.to(e.value.dtype)) for e, v in zip(sample.expected, values, strict=True)]
    if rule is None:
        return not any(compare(item, output).kind for item, output in pairs)
    return not any(compare_published(item.value, output, rule).kind for item, output in pairs)


def _strictly(reference: Reference, params: Fields, variations: list[str]) -> list[str]:
    """Return the degenerate answers that pass on all variations, with weights drawn anew."""
    model, rules = reference.model, PassingRules(variations)
    if model is None:
        return passing(reference, params, rules)[1]
    reference.precision.double = None
    try:
        with loaded(model, weights.resample(model, WEIGHTS_SEED)):
            return passing(reference, params, rules)[1]
    finally:
        reference.precision.double = None


def passing(
    reference: Reference, params: Fields, rules: PassingRules
) -> tuple[list[str], list[str]]:
    """Return the degenerate answers that pass on the problem's own inputs, and on all variations.

    The weights are the present ones.
    """
    passed: set[str] | None = None
    own: set[str] = set()
    double = rules.comparison is None
    for name in rules.variations:
        sample = make_sample(reference, params, name, rules.seeds[0], 1, double=double)
        if sample.skipped:
            continue
        other = make_sample(reference, params, name, rules.seeds[1], 1, double=False)
        values = answers(sample, other) if other.expected else {}
        values |= skipping(reference, sample)
        right = {key for key, made in values.items() if passes(sample, made, rules.comparison)}
        passed = right if passed is None else passed & right
        own = right if name == "nominal" else own
        if not passed:
            break
    return sorted(own), sorted(passed or ())
