"""The comparison of timed outputs: with the baseline's first, then with the reference's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import torch

from tilewright.evaluator.judge import inputs
from tilewright.evaluator.judge.comparison import Expected, Mismatch, compare
from tilewright.evaluator.judge.dynamic_shapes import have_same_shapes
from tilewright.evaluator.judge.index_ties import are_ties
from tilewright.evaluator.judge.inputs import InputSample
from tilewright.evaluator.judge.nominal_errors import NominalErrors
from tilewright.evaluator.judge.reference import ProblemFailure, Reference
from tilewright.evaluator.judge.repeated_comparison import compare_again, compare_truncated
from tilewright.evaluator.judge.truncated_factors import Outputs, without_truncation
from tilewright.evaluator.judge.wider_tolerance import resample_expected

UNREADABLE = Mismatch("values", "its output cannot be read from its memory")
TIMED_TOLERANCE_FACTOR = 2.0
"""Factor by which the tolerance of timed calls is larger. They are compared with the baseline's
outputs, which have rounding errors of their own."""


@dataclass(frozen=True)
class TimedComparison:
    """Compares the outputs of one timed call by strict rules."""

    reference: Reference
    nominal_errors: NominalErrors
    compare_expected: Callable[[InputSample, Outputs], tuple[Mismatch, float | None]]
    """Compares outputs with what a sample expects."""

    def difference(
        self, sample: InputSample, outputs: Outputs, centers: Outputs
    ) -> Mismatch | None:
        """Return the first difference from the baseline's outputs `centers`, if it is one."""
        items = zip(sample.expected, outputs, centers, strict=True)
        for place, (known, output, center) in enumerate(items):
            if output is None or center is None:
                return UNREADABLE
            found = _compare_with(center, known, output, varied=sample.varied)
            if found.kind and are_ties(self.reference, sample, place, center, output):
                continue
            if found.kind in ("values", "nonfinite") and (
                self._is_truncated(sample, outputs, centers) or self._is_right(sample, outputs)
            ):
                return None
            if found.kind:
                return found
        return None

    def as_checked(self, sample: InputSample, outputs: Outputs) -> Mismatch | None:
        """Return the first difference from the reference's outputs by the rules of checked calls.

        Those rules also compare rows, columns and the small elements of an output.
        """
        if sample.random:
            return None
        try:
            return self._difference_as_checked(sample, outputs)
        except (torch.OutOfMemoryError, ProblemFailure) as error:
            # Float64 of the outputs does not fit next to the slots of timed inputs.
            if isinstance(error, ProblemFailure) and not error.out_of_memory:
                raise
            self.reference.precision.ran_out_of_memory = True
            return None

    def _difference_as_checked(self, sample: InputSample, outputs: Outputs) -> Mismatch | None:
        fresh = replace(sample, expected=[], after=replace(sample.after))
        inputs.expect_outputs(self.reference, fresh, double=True)
        if fresh.oracle != sample.oracle or not have_same_shapes(fresh, sample):
            # Without memory for the oracle, errors would be compared with other ones.
            return None
        if sample.varied:
            fresh.expected = self.nominal_errors.floored(fresh.expected)
            if inputs.unsound(self.reference, fresh):
                return None
        compare_outputs = partial(self.compare_expected, fresh)
        found = compare_outputs(outputs)[0]
        if found.kind == "values":
            again = compare_again(self.reference, fresh, outputs, compare_outputs)
            found = again[0] if again is not None else found
        if not found.kind:
            return None
        return replace(found, message=f"by the rules of checked calls: {found.message}")

    def _is_truncated(self, sample: InputSample, outputs: Outputs, centers: Outputs) -> bool:
        """Tell whether all outputs are right but for the error of truncated factors."""
        exact = without_truncation(self.reference, sample, outputs, centers)
        return exact is not None and not any(
            output is None
            or center is None
            or _compare_with(center, known, output, varied=sample.varied).kind
            for known, output, center in zip(sample.expected, exact, centers, strict=True)
        )

    def _is_right(self, sample: InputSample, outputs: Outputs) -> bool:
        """Tell whether the reference says on these very inputs that the outputs are right.

        Only now is it computed whether it can judge, and how exactly. As in the stage correctness,
        nominal inputs are judged in any case.
        """
        fresh = resample_expected(self.reference, sample)
        if fresh is None:
            return False
        if sample.varied:
            fresh.expected = self.nominal_errors.floored(fresh.expected)
        compare_outputs = partial(self.compare_expected, fresh)
        return bool(
            (sample.varied and inputs.unsound(self.reference, fresh))
            or not have_same_shapes(fresh, sample)
            or not compare_outputs(outputs)[0].kind
            or compare_truncated(self.reference, fresh, outputs, compare_outputs)
        )


def compare_officially(
    outputs: Outputs, centers: Outputs, published: Callable[[torch.Tensor, torch.Tensor], Mismatch]
) -> Mismatch | None:
    """Return the first difference from the baseline's outputs by a benchmark's own rule."""
    for output, center in zip(outputs, centers, strict=True):
        found = UNREADABLE if output is None or center is None else published(center, output)
        if found.kind:
            return found
    return None


def _compare_with(
    center: torch.Tensor, known: Expected, output: torch.Tensor, *, varied: bool
) -> Mismatch:
    """Compare an output with the baseline's; of varied inputs no error is known."""
    item = replace(known, reference_error=0.0, error_rms=0.0) if varied else known
    return compare(item, output, center, TIMED_TOLERANCE_FACTOR)
