"""AutoTriton: independent samples whose worth is the product of two facts, whatever their speed."""

from __future__ import annotations

import pytest

from tests.search_turns import judged, played
from tests.triton_snippets import HONEST, SNIPPETS
from tilewright.errors import ConfigError
from tilewright.loop.strategies.autotriton import binary_score, make
from tilewright.loop.strategies.base import Plan

DISCARDED = next(case.code for case in SNIPPETS if case.name == "launched and discarded")
TORCH = next(case.code for case in SNIPPETS if case.name == "torch alone")


def fresh(turns=6, **options):
    return make(Plan(problem="p", turns=turns, options=options), lambda _: None)


@pytest.mark.parametrize("speedup", [0.5, 1.0, 9.0])
@pytest.mark.parametrize("verdict", ["correct", "incorrect", "failed", "rejected", "unjudged"])
@pytest.mark.parametrize(
    ("code", "minimal", "strict"), [(HONEST, 1, 1), (DISCARDED, 1, 0), (TORCH, 0, 0)]
)
def test_the_score_is_the_product_and_ignores_speed(code, minimal, strict, verdict, speedup):
    turn = judged(fresh().ask(1)[0], code, verdict, speedup)
    for rule, triton in (("paper_minimal", minimal), ("strict", strict)):
        wanted = None if verdict == "unjudged" else float(triton * (verdict == "correct"))
        assert binary_score(turn, rule) == wanted


def test_samples_are_independent_and_as_many_as_requests():
    asks = fresh(9).ask(20)
    assert len(asks) == 9
    assert not any(ask.shown_turns or ask.parents or ask.instruction for ask in asks)


def test_the_rule_decides_what_counts():
    def scores(**options):
        strategy = fresh(3, **options)
        codes = iter((HONEST, DISCARDED, TORCH))
        played(strategy, lambda ask: judged(ask, next(codes), speedup=1.0))
        return list(strategy.scores.values())

    assert scores() == [1.0, 0.0, 0.0]
    assert scores(rule="paper_minimal") == [1.0, 1.0, 0.0]


def test_a_search_may_stop_after_enough_samples():
    strategy = fresh(6, stop_after=2)
    codes = iter((TORCH, HONEST, DISCARDED, HONEST, HONEST, HONEST))
    turns = played(strategy, lambda ask: judged(ask, next(codes), speedup=1.0))
    assert len(turns) == 4
    assert strategy.stopped == "reached"
    assert len(played(fresh(6), lambda ask: judged(ask, HONEST, speedup=1.0))) == 6


def test_a_further_trial_replaces_the_score():
    strategy = fresh(2)
    first = strategy.ask(1)[0]
    strategy.tell(judged(first, HONEST, speedup=1.0))
    again = first.model_copy(update={"id": "again", "role": "measure", "parents": (first.id,)})
    strategy.tell(judged(again, HONEST, "incorrect"))
    assert strategy.scores == {first.id: 0.0}


@pytest.mark.parametrize(
    ("options", "name"),
    [({"rule": "loose"}, "rule"), ({"stop_after": 0}, "stop_after"), ({"n": 3}, "n")],
)
def test_options_out_of_range_are_refused_by_name(options, name):
    with pytest.raises(ConfigError, match=name):
        fresh(**options)
