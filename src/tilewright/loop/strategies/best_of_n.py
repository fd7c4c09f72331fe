"""Best of n: independent answers to one prompt, of which the best counts."""

from __future__ import annotations

from tilewright.loop.driver import Strategy
from tilewright.loop.strategies.base import FixedList, Options, Plan, Score, next_ask


def make(plan: Plan, score: Score) -> Strategy:  # noqa: ARG001 - one signature
    """Return a new strategy; it has no options."""
    Options.read("best_of_n", plan.options)
    return FixedList([next_ask(plan, turn) for turn in range(plan.turns)])
