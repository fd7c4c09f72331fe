"""Timed calls on input variations look like those that enter the ratio."""

from __future__ import annotations

import itertools
from typing import Any

from tests.unit.evaluator.timing.test_blocks import Scripted, plan, steady
from tilewright.evaluator.runners.pool import SLOTS


def timed_halves(blocks: int = 60) -> list[tuple[bool, list[dict[str, Any]]]]:
    """Return for each half in turn whether it was on a variation, and its calls."""
    session = Scripted.of(plan(blocks), steady(2e-3), steady(1e-3))
    session.usable_variations = {"one": ["offset", "sign"]}
    session.time()
    calls = session.logged("call")
    kinds = [fields["varied"] for fields in session.logged("renew")]
    halves = [calls[at : at + 2] for at in range(0, len(calls), 2)]
    return list(zip(kinds, halves, strict=True))


def test_calls_on_a_variation_come_in_the_order_of_the_next_timed_calls():
    halves = timed_halves(200)
    orders = [(varied, [call["runner"] for call in calls]) for varied, calls in halves]

    assert sum(varied for varied, _ in orders) > 20
    for (varied, order), (_, following) in itertools.pairwise(orders):
        if varied:
            assert order == following


def test_calls_on_a_variation_have_the_addresses_and_seeds_of_timed_calls():
    halves = timed_halves(200)
    for kind in (True, False):
        fields = [calls[1] for varied, calls in halves if varied is kind]
        assert len({call["base"] for call in fields}) == SLOTS
        assert len({call["forward_seed"] for call in fields}) == len(fields)
