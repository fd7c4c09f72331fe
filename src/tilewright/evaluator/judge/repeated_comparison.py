"""Another comparison of outputs that seem wrong, with what is computed only for them."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.evaluator.judge.comparison import Mismatch
from tilewright.evaluator.judge.inputs import InputSample
from tilewright.evaluator.judge.reference import Reference
from tilewright.evaluator.judge.truncated_factors import Outputs, without_truncation
from tilewright.evaluator.judge.wider_tolerance import excludes_widening, widen_tolerance

Compare = Callable[[Outputs], tuple[Mismatch, float | None]]
"""Compares outputs with what a sample expects; returns the first difference and the worst error."""


def compare_again(
    reference: Reference, sample: InputSample, outputs: Outputs, compare: Compare
) -> tuple[Mismatch, float | None] | None:
    """Compare outputs whose values differ; `None`: no comparison says anything new.

    The error of truncated factors is taken out first. Then the tolerance of ill-conditioned inputs
    applies, which is wider.
    """
    found = compare_truncated(reference, sample, outputs, compare)
    if found is None and _widened(reference, sample, outputs):
        found = compare(outputs)
        if found[0].kind:
            found = compare_truncated(reference, sample, outputs, compare) or found
    return found


def compare_truncated(
    reference: Reference, sample: InputSample, outputs: Outputs, compare: Compare
) -> tuple[Mismatch, float | None] | None:
    """Compare outputs without the error of truncated factors; `None`: they still differ."""
    exact = without_truncation(reference, sample, outputs, [item.value for item in sample.expected])
    found = None if exact is None else compare(exact)
    return None if found is None or found[0].kind else found


def _widened(reference: Reference, sample: InputSample, outputs: Outputs) -> bool:
    """Widen the tolerance, unless the outputs would be wrong under any; tell whether it is."""
    pairs = zip(sample.expected, outputs, strict=True)
    if any(output is not None and excludes_widening(item, output) for item, output in pairs):
        return False
    return widen_tolerance(reference, sample)
