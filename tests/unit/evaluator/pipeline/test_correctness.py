"""Which input variations a case gets, and in which order."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest

from tilewright.evaluator.pipeline.correctness import (
    FEW_VARIATIONS,
    MANY_VARIATIONS,
    PARTS,
    SIGNED,
    SMALL_BYTES,
    _variations,
)
from tilewright.wire.names import INPUT_VARIATIONS

Allowed = tuple[str, ...] | None


def chosen(seed: int, size: int, allowed: Allowed = None, number: int = 0) -> list[str]:
    problem = SimpleNamespace(input_variations=allowed)
    made: Any = SimpleNamespace(
        request=SimpleNamespace(problem=problem),
        context=SimpleNamespace(choices=lambda *names: random.Random(f"{seed} {names}")),
    )
    return _variations(made, number, size)


def test_small_inputs_get_every_variation_in_a_secret_order_after_uneven_parts():
    orders = {tuple(chosen(seed, SMALL_BYTES)) for seed in range(50)}
    assert {frozenset(order) for order in orders} == {frozenset(INPUT_VARIATIONS[1:])}
    assert {order[0] for order in orders} == {PARTS}
    assert len(orders) > 10


@pytest.mark.parametrize("seed", range(5))
def test_two_cases_together_get_every_variation(seed):
    first, second = (chosen(seed, SMALL_BYTES, None, number) for number in (0, 1))
    assert {*first[:MANY_VARIATIONS], *second[:MANY_VARIATIONS]} == set(INPUT_VARIATIONS[1:])


def test_large_inputs_get_uneven_parts_and_one_variation_of_either_kind():
    found = {tuple(chosen(seed, SMALL_BYTES + 1)[:FEW_VARIATIONS]) for seed in range(400)}
    assert {variations[0] for variations in found} == {PARTS}
    assert {len(set(variations) & set(SIGNED)) for variations in found} == {1}
    assert len(found) == 18


@pytest.mark.parametrize("allowed", [("scale", "offset"), ("sign",), ()])
def test_variations_that_a_problem_forbids_are_not_chosen(allowed):
    assert set(chosen(1, SMALL_BYTES, allowed)) == set(allowed)
