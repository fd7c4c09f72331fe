"""The reference's error on nominal inputs is the least that counts on a variation."""

from __future__ import annotations

import pytest
import torch

from tilewright.evaluator.judge.comparison import Expected, compare, expect
from tilewright.evaluator.judge.nominal_errors import NominalErrors


def inexact(share: float, seed: int = 1) -> Expected:
    oracle = torch.randn(64, 64, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    noise = torch.randn(64, 64, generator=torch.Generator().manual_seed(9), dtype=torch.float64)
    return expect((oracle + share * noise).float(), oracle)


def exact() -> Expected:
    whole = torch.randint(-90, 90, (64, 64), generator=torch.Generator().manual_seed(4)).double()
    return expect(whole.float(), whole)


def test_an_exact_reference_gets_the_error_of_nominal_inputs():
    known, item = NominalErrors(), exact()
    nominal = inexact(3e-7)
    known.note([nominal])
    (floored,) = known.floored([item])

    size = float(item.value.square().mean().sqrt())
    assert item.reference_error == 0.0
    assert floored.reference_error == pytest.approx(nominal.reference_error * size, rel=0.05)
    noise = torch.randn(64, 64, generator=torch.Generator().manual_seed(5))
    other = item.value + 6e-5 * noise
    assert compare(item, other).kind == "values"
    assert compare(floored, other).kind == ""
    # The error as a whole has its own limit.
    assert compare(floored, item.value + 20 * floored.reference_error).kind == "values"


def test_a_larger_error_stays_and_each_output_has_its_own():
    known = NominalErrors()
    known.note([inexact(1e-6), inexact(1e-4)])
    known.note([inexact(1e-5), inexact(1e-6)])
    rough = inexact(1e-2)
    first, second, third = known.floored([exact(), exact(), exact()])

    assert known.floored([rough]) == [rough]
    assert 5 < second.reference_error / first.reference_error < 20
    assert third.reference_error == 0.0


def test_integers_zeros_and_infinities_have_no_floor():
    known = NominalErrors()
    zeros = expect(torch.zeros(4), torch.zeros(4, dtype=torch.float64))
    known.note([zeros, expect(torch.arange(4), None)])
    assert known.floored([exact()])[0].reference_error == 0.0

    known.note([inexact(1e-5)])
    huge = torch.tensor([1.0, float("inf")], dtype=torch.float64)
    (item,) = known.floored([expect(huge.float(), huge)])
    assert 0 < item.reference_error < 1e-3
