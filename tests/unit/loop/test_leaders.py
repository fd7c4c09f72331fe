"""The best candidates of a run, by the means of their trials."""

from __future__ import annotations

import pytest

from tests.unit.loop.test_history import judged
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
