"""A new best candidate is measured again before the strategy hears of it."""

from __future__ import annotations

import pytest

from tests.unit.loop.test_history import judged
from tilewright.config import load
from tilewright.loop.run_state import begin_session
from tilewright.loop.strategies import beam, best_of_n, greedy, polca
from tilewright.loop.strategies.base import Plan
from tilewright.loop.strategies.raced_admissions import OPERATOR, RacedAdmissions
from tilewright.testing.strategy_checks import BEGUN, PROBLEM, check_strategy, score_of


def measured(ask, speedup, half=0.02):
    turn = judged(ask.id, speedup, source=ask.parents[0] if ask.role == "measure" else ask.id)
    if speedup is not None:
        interval = {"low": speedup * (1 - half), "high": speedup * (1 + half)}
        said = turn.judgements[0].model_copy(update=interval)
        turn = turn.model_copy(update={"judgements": (said,)})
    return turn.model_copy(update={"ask": ask})


class Heard:
    """Keeps what a strategy hears. Lifetime: one test."""

    def __init__(self, inner):
        self.inner, self.turns = inner, []
        self.ask = inner.ask

    def tell(self, turn):
        self.turns.append(turn)
        self.inner.tell(turn)


def searched(speedups, trials):
    """Run a search; `speedups` by request, and the results of trials in their order."""
    plan = Plan(problem="p", turns=len(speedups))
    heard = Heard(best_of_n.make(plan, score_of))
    strategy, trials, asks = RacedAdmissions(heard, plan, score_of), iter(trials), []
    while found := strategy.ask(1):
        (ask,) = found
        asks.append(ask)
        value = next(trials) if ask.operator == OPERATOR else speedups[ask.turn]
        strategy.tell(measured(ask, value))
    return asks, [turn.judgements[0].speedup for turn in heard.turns], heard.turns


def test_a_lucky_trial_leads_no_search():
    asks, heard, turns = searched([1.50, 1.52], [1.50, 1.44, 1.50, 1.44])
    raced = [ask.parents[0] for ask in asks if ask.operator == OPERATOR]
    assert raced[:2] == ["p#0.0", "p#0.1"]
    assert heard == [1.50, pytest.approx(1.44)]
    assert turns[1].judgements[0].low < 1.44 < turns[1].judgements[0].high


def test_a_candidate_that_is_clearly_better_or_worse_does_not_race():
    asks, heard, _ = searched([1.0, 2.0, 1.5], [])
    assert [ask.operator for ask in asks] == ["", "", ""]
    assert heard == [1.0, 2.0, 1.5]


def test_a_candidate_that_fails_in_its_race_is_told_as_incorrect():
    _, heard, turns = searched([1.50, 1.52, 1.20], [1.5, None])
    assert heard[1] is None
    assert turns[1].judgements[0].verdict == "incorrect"
    assert len(heard) == 3


def test_other_results_reach_the_strategy_while_a_race_runs():
    plan = Plan(problem="p", turns=4)
    heard = Heard(best_of_n.make(plan, score_of))
    strategy = RacedAdmissions(heard, plan, score_of)
    asks = strategy.ask(4)
    strategy.tell(measured(asks[0], 1.50))
    strategy.tell(measured(asks[1], 1.52))
    strategy.tell(measured(asks[2], None))
    assert [turn.ask.id for turn in heard.turns] == ["p#0.0", "p#0.2"]


@pytest.mark.parametrize("strategy", [beam, best_of_n, greedy, polca])
def test_the_rules_of_strategies_hold(strategy):
    check_strategy(
        lambda plan, score: RacedAdmissions(strategy.make(plan, score), plan, score),
        {"candidates": 3} if strategy is polca else {},
    )


def test_the_ending_of_a_name_makes_a_strategy_race(tmp_path):
    words = ["strategy=greedy,greedy+race", "turns=2", "race_candidates=0"]
    settings = load(overrides=[f"loop.{word}" for word in words], environ={})
    run = begin_session(tmp_path, BEGUN, [PROBLEM], settings)
    for turn in (ask for _ in range(2) for ask in run.strategy.ask(2)):
        run.strategy.tell(measured(turn, 1.5 + turn.turn / 100 + turn.sample / 1000))
    assert {(ask.operator, ask.sample) for ask in run.strategy.ask(8)} == {(OPERATOR, 1)}
