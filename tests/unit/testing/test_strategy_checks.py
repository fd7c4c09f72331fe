"""Every strategy passes `check_strategy`, and each broken rule is named."""

from __future__ import annotations

import random
from importlib.metadata import entry_points
from typing import Any, cast

import pytest

from tilewright.loop.strategies import best_of_n
from tilewright.loop.strategies.base import Factory, FixedList, Options, Plan, next_ask
from tilewright.records.events import Ask, Turn
from tilewright.testing.strategy_checks import StrategyFault, check_strategy

OURS = {item.name: item for item in entry_points(group="tilewright.strategies")}
OPTIONS: dict[str, dict[str, Any]] = {}
"""Options that a check of a strategy needs, by its name."""


@pytest.mark.parametrize("name", sorted(OURS))
def test_every_strategy_keeps_the_rules(name):
    check_strategy(cast("Factory", OURS[name].load()), OPTIONS.get(name))


class Broken:
    """A strategy of one request that breaks one rule."""

    def __init__(self, rule: str, plan: Plan) -> None:
        self._rule, self._plan, self._made, self._told = rule, plan, 0, 0

    def ask(self, limit: int) -> list[Ask]:  # noqa: ARG002 - one signature
        plan, rule = self._plan, self._rule
        if self._made and (rule != "after the end" or not self._told):
            return []
        self._made += 1
        if rule == "no request":
            return []
        if rule == "raises":
            return [next_ask(plan, 1 // 0)]
        if rule == "too many":
            return [next_ask(plan, turn) for turn in range(plan.turns + 1)]
        if rule == "same id":
            return [next_ask(plan, 0), next_ask(plan, 0)]
        if rule == "random":
            return [next_ask(plan, 0, instruction=str(random.random()))]
        if rule == "no choices":
            return [next_ask(plan, 0, role="choose")]
        return [next_ask(plan, self._made)]

    def tell(self, turn: Turn) -> None:  # noqa: ARG002 - one signature
        self._told += 1


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("no request", "no request at all"),
        ("too many", "25 requests, 24 are allowed"),
        ("same id", "two requests have one id"),
        ("random", "would now request|different logs"),
        ("no choices", "nothing to choose from"),
        ("no limit", "requests although the limit is 0"),
        ("raises", "it raises ZeroDivisionError"),
    ],
)
def test_a_broken_rule_is_named(rule, message):
    def make(plan: Plan, score: object) -> Broken:  # noqa: ARG001 - one signature
        Options.read("broken", plan.options)
        return Broken(rule, plan)

    with pytest.raises(Exception, match=message):
        check_strategy(make)


def test_unknown_options_must_be_refused_by_name():
    def make(plan: Plan, score: object) -> FixedList:  # noqa: ARG001 - one signature
        return FixedList([next_ask(plan, 0)])

    with pytest.raises(StrategyFault, match="accepts the option no_such_option"):
        check_strategy(make)
    check_strategy(best_of_n.make)
