"""The comparison of strategies: figures of trajectories, rows, curves and paired differences."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.records.events import Ask, EvalSummary, Reply, Turn
from tilewright.scoring.strategy_table import (
    NOT_RESOLVED,
    REMEASURE,
    figures_of,
    mean_interval,
    strategy_table,
)

NAMES = ("one", "two")


def turn_of(
    sample: int,
    number: int,
    speedup: float | None,
    *,
    source: str = "",
    verdict: str = "",
    **more: object,
) -> Turn:
    ask = Ask.model_validate(
        {"id": f"p#{sample}.{number}", "problem": "p", "sample": sample, "turn": number, **more}
    )
    shown = verdict or ("incorrect" if speedup is None else "correct")
    summary = EvalSummary.model_validate(
        {"protocol": "strict", "verdict": shown, "speedup": speedup, "seconds": 2.0}
    )
    return Turn(
        ask=ask,
        source=source or f"{sample} {number}",
        reply=Reply(text="", prompt_tokens=10, reply_tokens=5),
        judgements=(summary,),
    )


def final(sample: int, speedup: float | None, number: int = 90) -> Turn:
    return turn_of(sample, number, speedup, role="measure", operator=REMEASURE)


def test_the_figures_of_a_trajectory():
    turns = [
        turn_of(0, 0, 1.5),
        turn_of(0, 1, None),
        turn_of(0, 2, 3.0),
        turn_of(0, 3, None, verdict="unjudged"),
        turn_of(0, 4, 4.0, source="0 2", role="measure", parents=("p#0.2",)),
        final(0, 2.0),
        final(0, 8.0, 91),
    ]
    own = figures_of(turns, NAMES, 1)["one"]["p", 0]
    assert own.best_by_judged == pytest.approx([1.5, 1.5, 12**0.5])
    # The candidate has two trials, of 3 and 4.
    assert (own.claimed, own.remeasured) == (pytest.approx(12**0.5), pytest.approx(4.0))
    assert (own.device_s, own.tokens) == (10.0, 105)


def test_trajectories_belong_to_strategies_by_their_number():
    turns = [turn_of(sample, 0, float(sample + 1)) for sample in range(4)]
    found = figures_of(turns, NAMES, 2)
    claimed = {key: own.claimed for key, own in found["two"].items()}
    assert claimed == pytest.approx({("p", 0): 3.0, ("p", 1): 4.0})


def test_a_winner_that_is_wrong_at_the_end_counts_as_the_reference():
    turns = [turn_of(0, 0, 5.0), final(0, None), turn_of(1, 0, 2.0), final(1, 2.0)]
    first, second = strategy_table(turns, NAMES, 1)["rows"]
    assert (first["speedup"], first["wrong_winners"]) == (1.0, 1.0)
    assert second["speedup"] == pytest.approx(2.0)


def test_a_winner_that_is_correct_and_not_timed_at_the_end_is_not_wrong():
    at_end = turn_of(0, 90, None, verdict="correct", role="measure", operator=REMEASURE)
    own = figures_of([turn_of(0, 0, 5.0), at_end], NAMES, 1)["one"]["p", 0]
    assert (own.lost_at_end, own.final) == (0, [])


def test_drafts_that_nobody_judged_are_counted():
    draft = {"role": "draft"}
    turns = [
        turn_of(0, 0, None, **draft).model_copy(update={"judgements": ()}),
        turn_of(0, 1, None, **draft).model_copy(update={"judgements": ()}),
        turn_of(0, 2, 2.0, source="0 0", role="measure", parents=("p#0.0",)),
    ]
    assert figures_of(turns, NAMES, 1)["one"]["p", 0].refused == 1


def test_a_difference_that_seeds_do_not_show_is_not_resolved():
    equal = [turn_of(s, 0, 2.0 + 0.3 * (s % 3)) for s in range(12)]
    (row,) = strategy_table(equal, NAMES, 6)["differences"]
    assert (row["pairs"], row["better"]) == (6, NOT_RESOLVED)
    apart = [turn_of(s, 0, (2.0 if s < 6 else 3.0) + 0.01 * s) for s in range(12)]
    (row,) = strategy_table(apart, NAMES, 6)["differences"]
    assert row["better"] == "two"
    assert row["high"] < 1.0


def test_the_regret_falls_to_zero_at_the_best():
    turns = [turn_of(0, 0, 1.0), turn_of(0, 1, 4.0), turn_of(1, 0, 2.0)]
    curves = strategy_table(turns, NAMES, 1)["curves"]
    assert curves["one"] == [pytest.approx(math.log(4.0)), 0.0]
    assert curves["two"] == [pytest.approx(math.log(2.0))]


@given(st.lists(st.floats(-3, 3), min_size=2, max_size=30))
def test_the_interval_contains_its_mean(values):
    mean, low, high = mean_interval(values)
    assert low <= mean + 1e-9
    assert mean <= high + 1e-9


def test_one_trajectory_says_nothing_about_the_next():
    mean, low, high = mean_interval([0.5])
    assert (mean, low < -10, high > 10) == (0.5, True, True)
