"""Float8 and complex: converted for arithmetic that torch lacks, compared by stated rules."""

from __future__ import annotations

import math

import pytest
import torch

from tilewright.evaluator.judge.comparison import Expected, compare, expect
from tilewright.evaluator.judge.float64_casts import Float64Casts
from tilewright.evaluator.judge.number_formats import (
    FLOAT8,
    FLOAT8_COUNTED,
    from_parts,
    nudged,
    parts,
    same_values,
)
from tilewright.evaluator.judge.variations import is_structured, vary
from tilewright.evaluator.judge.weights import resample, shuffled
from tilewright.wire.names import INPUT_VARIATIONS

E4M3, E5M2 = FLOAT8
FORMATS = pytest.mark.parametrize("kind", FLOAT8, ids=["e4m3fn", "e5m2"])


def normal(*shape: int, seed: int = 1) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def next_number(value: torch.Tensor) -> torch.Tensor:
    """Return each positive element's next larger number of its format."""
    return (value.view(torch.uint8) + 1).view(value.dtype)


@FORMATS
def test_float8_survives_its_parts(kind):
    value = normal(8, 8).to(kind)

    assert same_values(from_parts(parts(value), value), value)


@FORMATS
def test_numbers_beyond_a_float8_format_become_its_largest(kind):
    like = torch.empty(2, dtype=kind)
    most = torch.finfo(kind).max

    assert from_parts(torch.tensor([1e9, -1e9]), like).float().tolist() == [most, -most]


@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_complex_survives_its_parts_also_conjugated(shape):
    value = torch.complex(normal(*shape), normal(*shape, seed=2)).conj()

    assert torch.equal(from_parts(parts(value), value), value)


@FORMATS
def test_one_step_is_right_and_two_are_wrong(kind):
    value = torch.full((4,), 1.5).to(kind)
    expected = expect(value, value.double())
    one = next_number(value)
    few = torch.cat([one[:1], value[1:]])

    assert not compare(expected, value).kind
    assert not compare(expected, few).kind
    assert compare(expected, torch.cat([next_number(one)[:1], value[1:]])).kind == "values"


@FORMATS
def test_zeros_and_doubled_values_are_wrong(kind):
    value = normal(64, 64).to(kind)
    expected = expect(value, value.double())

    assert compare(expected, torch.zeros_like(value)).kind == "values"
    assert compare(expected, (value.float() * 2).to(kind)).kind == "values"


@FORMATS
def test_the_smallest_numbers_have_the_step_of_their_format(kind):
    least = torch.finfo(kind).smallest_normal * torch.finfo(kind).eps
    value = torch.zeros(3).to(kind)
    expected = expect(value, value.double())

    assert not compare(expected, torch.tensor([least, 0, 0]).to(kind)).kind
    assert compare(expected, torch.tensor([3 * least, 0, 0]).to(kind)).kind == "values"


@FORMATS
def test_a_share_of_one_step_is_right_and_a_systematic_step_is_wrong(kind):
    exact = normal(64, 256) * 3
    value = exact.to(kind)
    expected = expect(value, value.double())
    rounded = exact.bfloat16().to(kind)
    smaller = (exact * 0.94).to(kind)

    assert 0 < float((rounded != value).double().mean()) < 0.06
    assert not compare(expected, rounded).kind
    found = compare(expected, smaller)
    assert found.kind == "values"
    assert compare(Expected(value, None, 0.0), smaller).kind == "values"


def test_few_elements_are_not_counted():
    value = torch.full((FLOAT8_COUNTED - 1,), 1.5).to(E4M3)

    assert not compare(expect(value, value.double()), next_number(value)).kind


@FORMATS
def test_a_timed_output_may_differ_from_the_baselines_by_two_steps(kind):
    value = torch.ones(4).to(kind)
    expected = Expected(torch.empty_like(value, device="meta"), None, 0.0)
    two = next_number(next_number(value))

    assert not compare(expected, two, value, 2.0).kind
    assert compare(expected, next_number(two), value, 2.0).kind == "values"


def test_nan_must_agree_in_float8():
    value = torch.tensor([1.0, math.nan]).to(E4M3)
    expected = expect(value, value.double())

    assert not compare(expected, value).kind
    assert compare(expected, torch.ones(2).to(E4M3)).kind == "nonfinite"
    assert compare(expected, torch.full((2,), math.nan).to(E4M3)).kind == "nonfinite"


@pytest.mark.parametrize("turn", [1.0, 1j, -1j])
def test_complex_parts_have_the_tolerance_of_the_magnitude(turn):
    value = torch.tensor([1000.0 + 1e-3j, 1.0 + 1.0j], dtype=torch.complex64)
    expected = expect(value, value.to(torch.complex128))
    eps = torch.finfo(torch.float32).eps
    near = value + torch.tensor([8 * eps * 1000 * turn, 0], dtype=torch.complex64)
    far = value + torch.tensor([40 * eps * 1000 * turn, 0], dtype=torch.complex64)

    assert not compare(expected, near).kind
    assert compare(expected, far).kind == "values"


def test_a_conjugate_is_wrong_and_so_is_a_lost_imaginary_part():
    value = torch.complex(normal(4, 4), normal(4, 4, seed=2))
    expected = expect(value, value.to(torch.complex128))

    assert not compare(expected, value).kind
    assert compare(expected, value.conj().resolve_conj()).kind == "values"
    assert compare(expected, value.real.to(torch.complex64)).kind == "values"


def test_a_complex_scalar_is_compared():
    value = torch.tensor(3 + 4j)

    assert not compare(expect(value, value.to(torch.complex128)), value.clone()).kind
    assert compare(expect(value, value.to(torch.complex128)), torch.tensor(3 + 4.1j)).kind


@FORMATS
@pytest.mark.parametrize("variation", INPUT_VARIATIONS[1:])
def test_float8_inputs_vary_and_stay_finite(kind, variation):
    value = (normal(32, 64) * 2).to(kind)
    other = vary(value, variation, torch.Generator().manual_seed(3))

    assert not is_structured(value)
    assert (other.dtype, other.shape) == (value.dtype, value.shape)
    assert not same_values(value, other)
    assert bool(torch.isfinite(other.float()).all())


@FORMATS
def test_float8_codes_keep_their_values(kind):
    codes = torch.randint(-3, 4, (32, 64)).to(kind)

    assert is_structured(codes)
    assert vary(codes, "scale", torch.Generator()) is codes


@pytest.mark.parametrize("variation", INPUT_VARIATIONS[1:])
def test_complex_inputs_vary(variation):
    value = torch.complex(normal(8, 16), normal(8, 16, seed=2))
    other = vary(value, variation, torch.Generator().manual_seed(3))

    assert (other.dtype, other.shape, other.stride()) == (value.dtype, value.shape, value.stride())
    assert float((other != value).double().mean()) > 0.01


@pytest.mark.parametrize("dtype", [*FLOAT8, torch.complex64])
def test_weights_of_every_inexact_dtype_are_drawn_anew(dtype):
    model = torch.nn.Module()
    value = normal(32, 32).to(dtype)
    model.weight = torch.nn.Parameter(value, requires_grad=False)
    fresh = resample(model, 3)["weight"]

    assert fresh.dtype == dtype
    assert float((fresh == value).double().mean()) < 0.2
    assert 0.5 < float(parts(fresh).std() / parts(value).std()) < 2


@pytest.mark.parametrize("dtype", [*FLOAT8, torch.complex64, torch.bool, torch.int8, torch.uint8])
def test_declared_buffers_get_their_own_values_in_another_order(dtype):
    model = torch.nn.Module()
    value = (normal(32, 32) * 20).abs().to(torch.uint8).to(dtype)
    model.register_buffer("codes", value)
    model.register_buffer("mask", value.clone())
    fresh = resample(model, 3, ("codes",))

    assert list(fresh) == ["codes"]
    assert not same_values(fresh["codes"], value)
    old, new = (parts(v).float().reshape(-1).sort()[0] for v in (value, fresh["codes"]))
    assert torch.equal(old, new)


def test_two_declared_buffers_have_different_orders():
    model = torch.nn.Module()
    model.register_buffer("one", torch.arange(64))
    model.register_buffer("two", torch.arange(64))
    fresh = resample(model, 3, ("one", "two"))

    assert not torch.equal(fresh["one"], fresh["two"])
    assert torch.equal(shuffled(fresh["one"], torch.Generator()).sort()[0], torch.arange(64))


def test_a_scaled_product_is_made_in_float64():
    a, b = normal(16, 32).to(E4M3), normal(16, 32, seed=2).to(E4M3)
    rows, columns = torch.rand(16, 1) + 1, torch.rand(1, 16) + 1
    with Float64Casts():
        whole = torch._scaled_mm(a, b.t(), rows, columns, out_dtype=torch.bfloat16)
        quantized = torch._scaled_mm(a, b.t(), torch.tensor(2.0), torch.tensor(1.0), out_dtype=E4M3)

    exact = (a.double() * rows.double()) @ (b.double().t() * columns.double())
    assert torch.equal(whole, exact)
    assert same_values(quantized, ((a.double() * 2) @ b.double().t()).to(E4M3))


def test_rounding_leaves_exact_data_alone():
    value = normal(4).to(E4M3)

    assert nudged(value) is value
    assert nudged(torch.ones(2)).tolist() == [1 - torch.finfo(torch.float32).eps] * 2


@pytest.mark.parametrize(
    "value",
    [torch.empty(0, 3), torch.rand(4, 6).t() > 0.5, torch.arange(6.0).reshape(2, 3) * 1j],
    ids=["empty", "bool, not contiguous", "complex"],
)
def test_elements_of_any_kind_get_another_order(value):
    made = shuffled(value, torch.Generator())
    assert (made.shape, made.dtype) == (value.shape, value.dtype)
    assert sorted(map(str, made.reshape(-1).tolist())) == sorted(
        map(str, value.reshape(-1).tolist())
    )
