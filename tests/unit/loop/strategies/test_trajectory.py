"""A trajectory ends at its limits, and then measures its best candidate again."""

from __future__ import annotations

import pytest

from tests.unit.loop.test_history import judged
from tilewright.loop.strategies import beam, best_of_n
from tilewright.loop.strategies.base import Plan
from tilewright.loop.strategies.trajectory import (
    FINAL_RACE,
    REMEASURE,
    LimitedTrajectory,
    TrajectoryLimits,
)
from tilewright.records.events import Ask, Turn

SPEEDS = {0: 1.0, 1: 3.0, 2: None, 3: 2.0}


def score(turn: Turn) -> float | None:
    return turn.judgements[0].speedup if turn.judgements else None


def answered(ask: Ask, source: str = "") -> Turn:
    speedup = SPEEDS.get(ask.turn, 1.5)
    made = judged(ask.id, speedup, source=source or ask.id)
    return made.model_copy(update={"ask": ask})


def run(trajectory: LimitedTrajectory, width: int, same: bool = False) -> list[Ask]:
    """Answer all requests, `width` at a time; return them in order."""
    seen: list[Ask] = []
    while asks := trajectory.ask(width):
        seen += asks
        for ask in asks:
            trajectory.tell(answered(ask, "same" if same else ""))
    return seen


@pytest.mark.parametrize("width", [1, 3, 8])
def test_no_more_candidates_are_judged_than_allowed(width):
    plan = Plan(problem="p", turns=20)
    limits = TrajectoryLimits(judged=4, final_trials=2)
    seen = run(LimitedTrajectory(best_of_n.make(plan, score), plan, score, limits), width)
    assert [ask.role for ask in seen] == ["propose"] * 4 + ["measure"] * 2
    assert [ask.parents for ask in seen[4:]] == [("p#0.1",)] * 2
    assert {ask.operator for ask in seen[4:]} == {REMEASURE}
    assert len({ask.id for ask in seen}) == 6


def test_equal_code_counts_once():
    plan = Plan(problem="p", turns=9)
    limits = TrajectoryLimits(judged=2)
    seen = run(LimitedTrajectory(best_of_n.make(plan, score), plan, score, limits), 1, same=True)
    assert len(seen) == 9


def test_seconds_of_evaluations_end_a_trajectory():
    plan = Plan(problem="p", turns=20)
    limits = TrajectoryLimits(device_s=5.0)
    # Each evaluation takes two seconds.
    assert len(run(LimitedTrajectory(best_of_n.make(plan, score), plan, score, limits), 1)) == 3


def test_without_limits_nothing_changes():
    plan = Plan(problem="p", turns=12, options={"width": 2, "branches": 2})
    bare = run(beam.make(plan, score), 3)  # type: ignore[arg-type]
    assert (
        run(LimitedTrajectory(beam.make(plan, score), plan, score, TrajectoryLimits()), 3) == bare
    )


def test_where_nothing_is_correct_nothing_is_measured_again():
    plan = Plan(problem="p", turns=1)
    trajectory = LimitedTrajectory(
        best_of_n.make(plan, score), plan, score, TrajectoryLimits(None, None, 3)
    )
    (ask,) = trajectory.ask(1)
    trajectory.tell(judged(ask.id, None).model_copy(update={"ask": ask}))
    assert trajectory.ask(1) == []


def noisy(ask: Ask, speedup: float | None) -> Turn:
    """Return a turn whose interval is 1 % wide on each side."""
    source = ask.parents[0] if ask.role == "measure" else ask.id
    turn = judged(ask.id, speedup, source=source).model_copy(update={"ask": ask})
    if speedup is None:
        return turn
    interval = {"low": speedup * 0.99, "high": speedup * 1.01}
    said = turn.judgements[0].model_copy(update=interval)
    return turn.model_copy(update={"judgements": (said,)})


def closed(first: list[float], truth: dict[str, float | None], **limits: int) -> list[Ask]:
    """Run a trajectory of `first` results; trials at its end have the true results."""
    plan = Plan(problem="p", turns=len(first))
    rules = TrajectoryLimits(final_trials=2, **limits)
    trajectory = LimitedTrajectory(best_of_n.make(plan, score), plan, score, rules)
    seen: list[Ask] = []
    while asks := trajectory.ask(3):
        seen += asks
        for ask in asks:
            value = truth[ask.parents[0]] if ask.role == "measure" else first[ask.turn]
            trajectory.tell(noisy(ask, value))
    return seen[len(first) :]


def test_candidates_that_may_be_the_best_race_before_the_final_trials():
    truth = {"p#0.0": 1.50, "p#0.1": 1.42}
    asks = closed([1.50, 1.51, 1.2], truth, race_candidates=3)
    raced = [ask.parents[0] for ask in asks if ask.operator == FINAL_RACE]
    assert raced == ["p#0.1", "p#0.0"] * 2
    # The lucky one has lost.
    assert [ask.parents for ask in asks if ask.operator == REMEASURE] == [("p#0.0",)] * 2
    assert len({ask.id for ask in asks}) == len(asks)


def test_copies_of_one_program_do_not_race_against_each_other():
    plan = Plan(problem="p", turns=3)
    limits = TrajectoryLimits(final_trials=2, race_candidates=3)
    trajectory = LimitedTrajectory(best_of_n.make(plan, score), plan, score, limits)
    asks = []
    while wanted := trajectory.ask(3):
        asks += wanted
        for ask in wanted:
            copy = noisy(ask, 1.5).model_copy(update={"source": "one program"})
            trajectory.tell(copy)
    assert [(ask.operator, ask.parents) for ask in asks[3:]] == [(REMEASURE, ("p#0.0",))] * 2


def test_nobody_races_without_a_rival_or_without_a_race():
    truth = {"p#0.0": 1.50, "p#0.1": 1.42, "p#0.2": 1.2}
    for first, count in (([1.0, 2.0], 3), ([1.50, 1.51], 1), ([1.50, 1.51], 0)):
        asks = closed(first, truth, race_candidates=count)
        assert {ask.operator for ask in asks} == {REMEASURE}


def test_a_candidate_that_fails_in_the_race_is_not_the_winner():
    truth = {"p#0.0": 1.50, "p#0.1": None}
    asks = closed([1.50, 1.51], truth, race_candidates=2)
    assert [ask.parents for ask in asks if ask.operator == REMEASURE] == [("p#0.0",)] * 2
    failed = closed([1.50, 1.51], dict.fromkeys(truth), race_candidates=2)
    assert not [ask for ask in failed if ask.operator == REMEASURE]
