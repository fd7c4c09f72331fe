"""Greedy: each request improves on the best answer so far."""

from __future__ import annotations

from tilewright.loop.driver import Strategy
from tilewright.loop.strategies.base import Options, Plan, Score
from tilewright.loop.strategies.sequential import Rewards, Sequential, vanilla


def make(plan: Plan, score: Score) -> Strategy:
    """Return a new strategy; it has no options."""
    Options.read("greedy", plan.options)
    return Sequential(plan, score, _first_best, improves_shown=True, narrows=True)


def _first_best(rewards: Rewards) -> list[int]:
    # `max` keeps the first of equal ones.
    judged = vanilla(rewards, 1)
    return [max(judged, key=lambda place: rewards[place] or 0.0)] if judged else []
