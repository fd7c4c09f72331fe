"""Which input variations a case gets, and in which order."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest

from tilewright.evaluator.pipeline.correctness import (
    FEW_VARIATIONS,
    SIGNED,
    SMALL_BYTES,
    _variations,
)
from tilewright.wire.names import INPUT_VARIATIONS


def chosen(seed: int, size: int, allowed: tuple[str, ...] | None = None) -> list[str]:
    problem = SimpleNamespace(input_variations=allowed)
    made: Any = SimpleNamespace(
        request=SimpleNamespace(problem=problem),
        context=SimpleNamespace(choices=lambda *_: random.Random(seed)),
    )
    return _variations(made, SimpleNamespace(name="a"), size)  # type: ignore[arg-type]


def test_small_inputs_get_every_variation_in_a_secret_order():
    orders = {tuple(chosen(seed, SMALL_BYTES)) for seed in range(50)}
    assert {frozenset(order) for order in orders} == {frozenset(INPUT_VARIATIONS[1:])}
    assert len(orders) > 10


def test_large_inputs_get_a_few_variations_with_exactly_one_sign_change():
    found = {tuple(chosen(seed, SMALL_BYTES + 1)) for seed in range(200)}
    assert {len(variations) for variations in found} == {FEW_VARIATIONS}
    assert {len(set(variations) & set(SIGNED)) for variations in found} == {1}
    assert len(found) == 9


@pytest.mark.parametrize("allowed", [("scale", "offset"), ("sign",), ()])
def test_variations_that_a_problem_forbids_are_not_chosen(allowed):
    assert set(chosen(1, SMALL_BYTES, allowed)) == set(allowed)
