"""Factors that were truncated to tf32, as tensor cores do, are right where tf32 is allowed."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.evaluator.judge.test_tf32_products import PRODUCT, loaded
from tilewright.evaluator.judge import inputs
from tilewright.evaluator.judge.comparison import compare
from tilewright.evaluator.judge.nominal_errors import NominalErrors
from tilewright.evaluator.judge.repeated_comparison import compare_again
from tilewright.evaluator.judge.tf32_products import rounded_to_tf32, truncated_to_tf32
from tilewright.evaluator.judge.timed_comparison import TimedComparison

CHAIN = "return (x @ weight) @ weight.t()"


def bfloat16(value: torch.Tensor) -> torch.Tensor:
    return value.bfloat16().float()


def lower_half(value: torch.Tensor) -> torch.Tensor:
    """Truncate as far as bfloat16, which has three bits less than tf32."""
    return value.view(torch.int32).bitwise_and(-(1 << 16)).view(torch.float32)


def positive(body: str = PRODUCT, *, allowed: bool = True, rows: int = 256):
    """Return a reference and a sample of positive inputs, whose products are all positive."""
    made = loaded(body.replace("x @", "x.abs() @"), allowed=allowed)
    sample = inputs.make_sample(made, {"rows": rows}, "nominal", 3, 3, double=True)
    return made, sample


def product(sample, kind, chain: bool = False):
    x, weight = sample.arguments()
    found = kind(x.abs()) @ kind(weight)
    return kind(found) @ kind(weight.t().contiguous()) if chain else found


def compared(made, sample, output):
    """Return the difference as the stage correctness finds it."""

    def compare_outputs(outputs):
        found = compare(sample.expected[0], outputs[0])
        return found, found.error_over_tolerance

    first = compare_outputs([output])
    if not first[0].kind:
        return first[0]
    return (compare_again(made, sample, [output], compare_outputs) or first)[0]


@given(st.floats(width=32))
def test_truncation_keeps_ten_bits_and_makes_no_number_larger(number):
    value = torch.tensor([number])
    found = truncated_to_tf32(value)
    if not torch.isfinite(value):
        assert torch.equal(found.isnan(), value.isnan())
        return
    assert int(found.view(torch.int32)) & 0x1FFF == 0
    assert 0 <= float(found.abs()) <= abs(number)
    assert abs(number) - float(found.abs()) <= max(abs(number) * 2.0**-10, 2.0**-136)


def test_truncated_factors_are_right_and_bfloat16_is_not():
    made, sample = positive()
    assert compared(made, sample, product(sample, rounded_to_tf32)).kind == ""
    assert compared(made, sample, product(sample, truncated_to_tf32)).kind == ""
    for kind in (bfloat16, lower_half):
        assert compared(made, sample, product(sample, kind)).kind == "values"


def test_two_products_may_both_truncate():
    made, sample = positive(CHAIN)
    assert compared(made, sample, product(sample, truncated_to_tf32, chain=True)).kind == ""
    assert compared(made, sample, product(sample, lower_half, chain=True)).kind == "values"


def test_a_scale_beyond_twice_the_error_is_wrong():
    made, sample = positive()
    right, truncated = sample.expected[0].value, product(sample, truncated_to_tf32)
    for times, wrong in ((1.9, ""), (4.0, "values"), (-2.0, "values")):
        output = right + times * (truncated - right)
        assert compared(made, sample, output).kind == wrong, times


def test_where_tf32_is_forbidden_truncated_factors_are_wrong():
    made, sample = positive(allowed=False)
    assert compared(made, sample, product(sample, truncated_to_tf32)).kind == "values"


@pytest.mark.parametrize("variation", ["nominal", "scale"])
def test_timed_calls_follow_the_same_rule(variation):
    made, sample = positive()
    sample.variation = variation

    def compare_expected(fresh, outputs):
        found = compare(fresh.expected[0], outputs[0])
        return found, found.error_over_tolerance

    timed = TimedComparison(made, NominalErrors(), compare_expected)
    centers = [sample.expected[0].value]
    for kind, wrong in ((rounded_to_tf32, ""), (truncated_to_tf32, ""), (lower_half, "values")):
        found = timed.difference(sample, [product(sample, kind)], centers)
        assert (found.kind if found else "") == wrong, kind
