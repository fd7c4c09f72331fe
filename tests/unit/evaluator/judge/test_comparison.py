"""Comparison: the tolerance is exact at its edge, and values that are not finite must agree."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from tilewright.evaluator.judge import comparison
from tilewright.evaluator.judge.comparison import (
    EPS_FACTOR,
    PERCENTILE,
    REFERENCE_ERROR_FACTOR,
    Expected,
    compare,
    expect,
    percentile,
    tolerance,
    with_sensitivity,
)
from tilewright.evaluator.judge.output_description import describe_mismatch

EPS = torch.finfo(torch.float32).eps
INF, NAN = math.inf, math.nan


def single(value: float, reference_error: float = 0.0) -> Expected:
    tensor = torch.tensor([value])
    return Expected(tensor, tensor.double(), reference_error)


def said(**changes: object) -> dict[str, object]:
    plain = {"type": "tensor", "dtype": "float32", "shape": [2, 3]}
    return {**plain, "device": "cpu", "layout": "strided", "address": 4096, **changes}


@pytest.mark.parametrize("value", [1.0, -1.0, 1024.0, 2.0**-40])
@pytest.mark.parametrize("direction", [1.0, -1.0])
def test_an_error_is_right_up_to_the_tolerance_and_wrong_beyond(value, direction):
    edge = torch.tensor([value + direction * EPS_FACTOR * EPS * abs(value)])
    beyond = torch.nextafter(edge, torch.tensor([direction * INF]))

    assert compare(single(value), edge).error_over_tolerance == 1.0
    assert not compare(single(value), edge).kind
    assert compare(single(value), beyond).kind == "values"


def test_the_reference_error_widens_the_tolerance():
    expected = single(1.0, reference_error=2.0**-18)
    edge = 1.0 + REFERENCE_ERROR_FACTOR * 2.0**-18

    assert not compare(expected, torch.tensor([edge])).kind
    assert compare(expected, torch.tensor([edge + 4 * EPS])).kind == "values"


def test_a_small_element_gets_the_rounding_tolerance_of_its_slice():
    value = torch.tensor([[0.0, 3.0, 4.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    rms = 2.5
    allowed = tolerance(Expected(value, value.double(), 0.0), value.double())

    assert EPS_FACTOR * EPS * rms == pytest.approx(float(allowed[0, 0]), rel=1e-12)
    assert pytest.approx(float(allowed[0, 2]), rel=1e-12) == EPS_FACTOR * EPS * 4.0
    assert float(allowed[1, 0]) <= 1e-300


def test_a_row_of_zeros_must_be_zero():
    expected = Expected(torch.zeros(2, 3), torch.zeros(2, 3).double(), 0.0)

    assert not compare(expected, torch.zeros(2, 3)).kind
    assert compare(expected, torch.full((2, 3), 1e-30)).kind == "values"


def test_a_scalar_has_the_tolerance_of_its_own_size():
    value = torch.tensor(-8.0)

    assert (
        float(tolerance(Expected(value, value.double(), 0.0), value.double()))
        == EPS_FACTOR * EPS * 8
    )


def test_slack_scales_both_parts_of_the_tolerance():
    expected, exact = single(1.0, reference_error=0.25), single(1.0)
    wide = REFERENCE_ERROR_FACTOR * 0.25

    assert float(tolerance(expected, expected.value.double(), 1.0)) == wide
    assert float(tolerance(expected, expected.value.double(), 2.0)) == 2 * wide
    assert float(tolerance(exact, exact.value.double(), 2.0)) == 2 * EPS_FACTOR * EPS


def test_each_dtype_has_its_own_rounding():
    for dtype in (torch.float64, torch.float16, torch.bfloat16):
        value = torch.ones(4096, dtype=dtype)
        expected = Expected(value, value.double(), 0.0)
        eps = torch.finfo(dtype).eps
        edge, beyond = value.double().clone(), value.double().clone()
        edge[7] += EPS_FACTOR * eps
        beyond[7] += 5 * EPS_FACTOR * eps

        assert EPS_FACTOR * eps == float(tolerance(expected, value.double())[0])
        assert not compare(expected, edge.to(dtype)).kind
        assert compare(expected, beyond.to(dtype)).kind


def test_the_message_shows_the_worst_element():
    value = torch.arange(6.0).reshape(2, 3)
    output = value.clone()
    output[1, 2] = 9.0
    output[0, 1] = 1.1

    difference = compare(Expected(value, value.double(), 0.0), output)

    assert "at [1, 2]: expected 5, got 9" in difference.message
    assert "2 of 6 elements are wrong" in difference.message
    assert difference.error_over_tolerance is not None
    assert difference.error_over_tolerance > 1e5


def test_an_empty_output_is_right():
    empty = torch.empty(0, 3)

    assert not compare(Expected(empty, empty.double(), 0.0), empty).kind


@pytest.mark.parametrize(
    ("reference", "got", "right"),
    [
        (NAN, NAN, True),
        (INF, INF, True),
        (-INF, -INF, True),
        (NAN, INF, False),
        (INF, -INF, False),
        (INF, NAN, False),
        (NAN, 0.0, False),
        (INF, 3e38, False),
        (1.0, NAN, False),
        (1.0, INF, False),
    ],
)
def test_values_that_are_not_finite_must_agree(reference, got, right):
    difference = compare(single(reference), torch.tensor([got]))

    assert ("" if right else "nonfinite") == difference.kind
    assert right or "at [0]" in difference.message


def test_one_nan_among_right_numbers_is_found():
    value = torch.ones(64, 64)
    output = value.clone()
    output[63, 63] = NAN

    difference = compare(Expected(value, value.double(), 1.0), output)

    assert difference.kind == "nonfinite"
    assert "at [63, 63]" in difference.message
    assert "1 elements disagree" in difference.message


def test_where_only_the_reference_overflows_the_float64_result_decides():
    expected = Expected(torch.tensor([INF]), torch.tensor([1e5]).double(), 0.0)

    assert not compare(expected, torch.tensor([INF])).kind
    assert not compare(expected, torch.tensor([1e5])).kind
    assert compare(expected, torch.tensor([2e5])).kind == "values"
    assert compare(expected, torch.tensor([NAN])).kind == "nonfinite"
    assert compare(expected, torch.tensor([-INF])).kind == "nonfinite"


def test_integers_are_those_of_the_reference_or_of_the_oracle():
    value, oracle = torch.tensor([1, 2, 3]), torch.tensor([1, 5, 3])
    expected = expect(value, oracle)

    assert not compare(expected, torch.tensor([1, 2, 3])).kind
    assert not compare(expected, torch.tensor([1, 5, 3])).kind
    assert compare(expected, torch.tensor([1, 7, 3])).kind
    difference = compare(expected, torch.tensor([1, 2, 4]))
    assert difference.kind == "values"
    assert "flat index 2: expected 3, got 4" in difference.message


def test_integers_and_booleans_without_a_float64_result_must_be_exact():
    flags = torch.tensor([True, False])

    assert not compare(expect(flags, None), torch.tensor([True, False])).kind
    assert compare(expect(flags, None), torch.tensor([True, True])).kind
    assert compare(expect(torch.tensor([1]), torch.tensor([1, 1])), torch.tensor([2])).kind


def test_a_given_center_replaces_the_float64_result():
    expected = Expected(torch.tensor([1.0]), torch.tensor([1.0]).double(), 0.0)

    assert not compare(expected, torch.tensor([3.0]), torch.tensor([3.0]), 2.0).kind
    assert compare(expected, torch.tensor([1.0]), torch.tensor([3.0]), 2.0).kind


@pytest.mark.parametrize("place", [0, 6, 9, 19])
@pytest.mark.parametrize(("wrong", "kind"), [(1e-3, "values"), (NAN, "nonfinite")])
def test_a_wrong_element_is_found_in_any_chunk(monkeypatch, place, wrong, kind):
    monkeypatch.setattr(comparison, "CHUNK_ELEMENTS", 7)
    center = torch.randn(4, 5)
    expected, output = Expected(center.to("meta"), None, 1e-6), center + 1e-6
    assert not compare(expected, output, center, 2.0).kind
    output.view(-1)[place] += wrong
    assert compare(expected, output, center, 2.0).kind == kind


def test_the_reference_error_is_the_percentile_of_the_finite_errors():
    oracle = torch.zeros(2000, dtype=torch.float64)
    value = torch.zeros(2000)
    value[:5] = torch.tensor([INF, NAN, 64.0, 32.0, 16.0])

    # Of 1998 finite errors, 0.1 % lie above the 1996th of them in order.
    assert expect(value, oracle).reference_error == 32.0
    assert expect(value, None).reference_error == 0.0
    assert percentile(torch.empty(0), 0.999) == 0.0
    assert percentile(torch.tensor([3.0]), 0.999) == 3.0
    assert percentile(torch.tensor([4.0, 1.0, 3.0, 2.0]), 1.0) == 4.0


def test_a_long_tensor_is_sampled():
    values = torch.zeros((1 << 20) + 2)
    values[::2] = 1.0

    assert percentile(values, 0.0) == 1.0


@pytest.mark.parametrize(
    ("item", "kind", "message"),
    [
        (said(type="torch.nn.Parameter"), "dtype", "expected a torch.Tensor, got torch.nn"),
        (said(shape=[3, 2]), "shape", "expected shape [2, 3], got [3, 2]"),
        (said(shape=[2, 3, 1]), "shape", "got [2, 3, 1]"),
        (said(dtype="float64"), "dtype", "expected float32, got float64"),
        (said(device="meta"), "dtype", "got strided on meta"),
        (said(layout="sparse_coo"), "dtype", "got sparse_coo on cpu"),
    ],
)
def test_a_wrong_kind_of_output_is_named(item, kind, message):
    value = torch.zeros(2, 3)
    difference = describe_mismatch(Expected(value, value.double(), 0.0), item, "cpu")

    assert difference is not None
    assert kind == difference.kind
    assert message in difference.message


def test_an_output_may_lie_on_the_host_where_that_of_the_reference_does():
    value = torch.zeros(2, 3, device="meta")
    expected = Expected(value, None, 0.0)
    assert describe_mismatch(expected, said(device="meta"), "meta") is None
    assert describe_mismatch(expected, said(device="cpu"), "meta") is not None
    assert describe_mismatch(expected, said(device="cpu"), "cpu") is None


def test_an_output_without_an_address_is_a_mismatch():
    value = torch.zeros(2, 3)
    expected = Expected(value, value.double(), 0.0)
    unplaced = said()
    del unplaced["address"]

    assert describe_mismatch(expected, said(), "cpu") is None
    assert describe_mismatch(expected, unplaced, "cpu") is not None


def test_a_difference_of_nearly_equal_numbers_may_have_their_rounding_error():
    rows = [[-1.4e-8, 1.4e-8], [0.5, -0.25], [0.3, 0.4]]
    oracle = torch.tensor(rows, dtype=torch.float64)
    strict = Expected(oracle.float(), oracle, 1e-12)
    output = oracle.float().clone()
    output[0, 0] = 0.0
    assert compare(strict, output).kind == "values"
    rounding_sensitivity = torch.tensor(
        [[6e-8, 6e-8], [1e-9, 1e-9], [1e-9, 1e-9]], dtype=torch.float64
    )
    assert compare(replace(strict, rounding_sensitivity=rounding_sensitivity), output).kind == ""
    # Elsewhere nothing more is allowed, and never more than a share of the whole output.
    output[1, 0] += 1e-3
    assert (
        compare(replace(strict, rounding_sensitivity=rounding_sensitivity), output).kind == "values"
    )
    assert (
        compare(
            replace(strict, rounding_sensitivity=torch.full_like(rounding_sensitivity, 10.0)),
            output,
        ).kind
        == "values"
    )


def test_a_few_elements_may_have_the_worst_error_of_the_reference():
    oracle = torch.full((100, 1000), 1e-9, dtype=torch.float64)
    strict = Expected(
        oracle.float(),
        oracle,
        1e-15,
        rounding_sensitivity=torch.zeros_like(oracle),
        worst_reference_error=6e-8,
    )
    output = oracle.float().clone()
    output.view(-1)[:10] += 1e-7
    found = compare(strict, output)
    assert found.kind == ""
    assert found.error_over_tolerance == pytest.approx(1e-7 / 1.2e-7, rel=1e-3)
    # Not where nobody asked how far the reference is off, and not around a baseline's output.
    assert compare(replace(strict, worst_reference_error=0.0), output).kind == "values"
    assert compare(strict, output, oracle.float()).kind == "values"
    # Neither further off, nor more than a few.
    further = output.clone()
    further[50, 50] += 1.3e-7
    assert compare(strict, further).kind == "values"
    output.view(-1)[10] += 1e-7
    assert compare(strict, output).kind == "values"


def test_the_error_of_a_huge_element_excuses_no_other():
    oracle = torch.full((100, 1000), 1e-3, dtype=torch.float64)
    oracle[0] = 1e6
    value = oracle.float().clone()
    value[0, 0] += 0.5
    # The reference is within the tolerance everywhere, and one float32 step off where it is huge.
    expected = with_sensitivity(Expected(value, oracle, 1e-12), torch.zeros_like(oracle))
    assert expected.worst_reference_error == 0.0
    output = value.clone()
    output[50, :5] = 0.0
    assert compare(expected, output).kind == "values"

    # Where it exceeds the tolerance itself, the excess counts.
    value[50, 0] += 1e-5
    expected = with_sensitivity(Expected(value, oracle, 1e-12), torch.zeros_like(oracle))
    assert expected.worst_reference_error == pytest.approx(1e-5, rel=1e-3)


@pytest.mark.parametrize("count", [0, 1, 99, 100, 101, 250, 1000])
@pytest.mark.parametrize("infinite", [False, True])
def test_the_sampled_reference_error_is_that_of_the_whole_tensor(monkeypatch, count, infinite):
    monkeypatch.setattr(comparison, "SAMPLE", 100)
    oracle = torch.randn(count, dtype=torch.float64)
    oracle[::3] = INF if infinite else 1.0
    value = oracle.float()
    error = (value.double() - oracle).abs()
    error = error[torch.isfinite(error)]
    assert expect(value, oracle).reference_error == percentile(error, PERCENTILE)


@pytest.mark.parametrize("at_once", [5, 64, 1 << 20])
def test_rounding_sensitivity_is_the_same_for_any_chunk_size(monkeypatch, at_once):
    monkeypatch.setattr(comparison, "CHUNK_ELEMENTS", at_once)
    oracle = torch.randn(40, 5, dtype=torch.float64)
    value = (oracle + 1e-3 * torch.randn(40, 5)).float()
    value[7, 2] = INF
    rounding_sensitivity = torch.rand(40, 5, dtype=torch.float64) * 1e-3
    expected = Expected(value, oracle, 1e-5)
    found = with_sensitivity(expected, rounding_sensitivity)

    own = (value.double() - oracle).abs().nan_to_num(0.0, 0.0, 0.0)
    plain = torch.maximum(oracle.abs(), oracle.square().mean(-1, keepdim=True).sqrt())
    allowed = (EPS_FACTOR * EPS * plain).clamp_min(REFERENCE_ERROR_FACTOR * 1e-5)
    assert found.worst_reference_error == float(own[own > allowed].max())
    assert found.rounding_sensitivity is not None
    assert torch.equal(
        found.rounding_sensitivity, rounding_sensitivity.clamp_min(float(own.max()) / 2)
    )
