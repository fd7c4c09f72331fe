"""The best candidates of a run, by the means of their trials."""

from __future__ import annotations

import random

import pytest

from tests.unit.loop.test_history import judged
from tilewright.loop.estimates import Estimates
from tilewright.loop.leaders import Leaders, best_of, nothing_judged
from tilewright.records.events import Ask
from tilewright.testing.strategy_checks import score_of


def trial(ask, parent, speedup):
    turn = judged(ask, speedup, source=parent)
    return turn.model_copy(
        update={"ask": Ask(id=ask, problem="p", role="measure", parents=(parent,))}
    )


def first(name, speedup):
    return judged(name, speedup, source=name)


def test_the_mean_of_trials_counts_and_not_the_best_one():
    turns = [first("a", 1.5), first("b", 2.0), trial("c", "b", 0.9)]
    assert best_of(turns[:2], score_of)["p"].ask.id == "b"
    assert best_of(turns, score_of)["p"].ask.id == "a"


def test_a_candidate_that_fails_a_trial_leads_no_more():
    leaders = Leaders(score_of, [first("a", 1.5), first("b", 2.0)])
    leaders.add(trial("c", "b", None))
    assert leaders.best()["p"].ask.id == "a"
    leaders.add(trial("d", "a", None))
    assert leaders.best() == {}


def test_of_equal_candidates_the_first_leads():
    assert best_of([first("a", 1.5), first("b", 1.5)], score_of)["p"].ask.id == "a"


def test_the_leader_is_the_best_of_all_candidates_after_each_turn():
    choices, leaders, estimates = random.Random(1), Leaders(score_of), Estimates()
    ranks: dict[str, tuple[float, float]] = {}
    for number in range(500):
        name = f"c{number}" if number % 3 == 0 else f"c{choices.randrange(0, 60, 3)}"
        speedup = choices.choice([None, *[1.0, 2.0, 4.0] * 5, choices.uniform(1, 4)])
        turn = judged(f"{name}.{number}", speedup, source=name)
        estimates.add(turn)
        leaders.add(turn)
        estimate = estimates.of(turn.ask.id)
        if estimate.interval is None:
            ranks.pop(name, None)
        else:
            ranks[name] = estimate.speedup, estimate.interval[0]
        best = leaders.best_of_problem("p")
        assert (best and best.source) == max(ranks, key=ranks.get, default=None)
        assert leaders.best() == ({} if best is None else {"p": best})
    assert leaders.best_of_problem("another") is None


class Counted(float):
    """A score that counts its comparisons: tuples compare by equality first."""

    compared = 0

    def __eq__(self, other):
        Counted.compared += 1
        return float(self) == float(other)

    __hash__ = float.__hash__

    def __neg__(self):
        return Counted(-float(self))


def test_a_turn_is_not_compared_with_all_candidates_before_it():
    leaders = Leaders(lambda turn: Counted(score_of(turn)))
    for number in range(400):
        leaders.add(first(str(number), 1.0 + number % 97))
        assert leaders.best_of_problem("p").judgements[0].speedup == 1.0 + min(number, 96)
        if number % 10 == 0:
            # The leader gets slower, and another one leads.
            leaders.add(trial(f"{number} again", str(number), 0.5))
    assert Counted.compared < 400 * 50


@pytest.mark.parametrize(
    ("verdicts", "none"), [([], False), (["unjudged"], True), (["unjudged", "failed"], False)]
)
def test_whether_anything_was_judged(verdicts, none):
    turns = []
    for number, verdict in enumerate(verdicts):
        turn = first(str(number), None)
        said = turn.judgements[0].model_copy(update={"verdict": verdict})
        turns.append(turn.model_copy(update={"judgements": (said,)}))
    assert nothing_judged(turns) == none
