"""The ladder of rewards: every outcome at every step, and what counts as faster."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.records.codes import FailureReason, Stage
from tilewright.records.events import EvalSummary
from tilewright.scoring.ladder import is_faster, ladder_reward, rung

RUNGS = {
    # (compiles, runs correctly, is faster): the cumulative and the exclusive reward.
    "not_compiled": (-1.0, -1.0),
    "not_executed": (-0.4, -0.5),
    "executed": (0.6, 0.5),
    "faster": (1.6, 1.0),
}


def judgement(verdict="correct", speedup=None, error=0.0, **fields):
    low, high = (speedup * (1 - error), speedup * (1 + error)) if speedup else (None, None)
    return EvalSummary(
        protocol="strict", verdict=verdict, speedup=speedup, low=low, high=high, **fields
    )


@pytest.mark.parametrize("step", range(9))
@pytest.mark.parametrize("reached", sorted(RUNGS))
def test_the_reward_of_every_outcome_follows_the_formula(reached, step):
    cumulative, exclusive = RUNGS[reached]
    assert ladder_reward(reached, step) == pytest.approx(cumulative - 0.05 * step)
    assert ladder_reward(reached, step, cumulative=False) == pytest.approx(exclusive - 0.05 * step)
    multiplied = ladder_reward(reached, step, decay=0.1, form="multiplicative")
    assert multiplied == pytest.approx(cumulative * (1 - 0.1 * step))


def test_a_multiplicative_decay_never_turns_a_gain_into_a_loss():
    assert ladder_reward("faster", 40, form="multiplicative") == 0.0


@pytest.mark.parametrize(
    ("after", "reached"),
    [
        (judgement("failed", code=FailureReason.SYNTAX_ERROR), "not_compiled"),
        (judgement("failed", code=FailureReason.BUILD, stage=Stage.BUILD), "not_compiled"),
        (judgement("failed", code=FailureReason.EXCEPTION, stage=Stage.PRECOMPILE), "not_compiled"),
        (judgement("failed", code=FailureReason.NO_CANDIDATE), "not_compiled"),
        (judgement("failed", code=FailureReason.CRASH, stage=Stage.CORRECTNESS), "not_executed"),
        (judgement("incorrect"), "not_executed"),
        (judgement("rejected"), "not_executed"),
        (judgement(speedup=2.0), "executed"),
        (judgement(speedup=2.1), "faster"),
        (judgement(), "executed"),
        (judgement("unjudged"), None),
    ],
)
def test_the_rung_of_a_verdict(after, reached):
    assert rung(judgement(speedup=2.0), after) == reached


def test_a_gain_counts_above_one_percent_and_two_standard_errors():
    base = judgement(speedup=1.0)
    assert not is_faster(base, judgement(speedup=math.exp(0.0099)))
    assert is_faster(base, judgement(speedup=math.exp(0.0101)))
    # Intervals of 4 % give errors of 2 % each, so that two errors of the gain are about 5.8 %.
    noisy = judgement(speedup=1.0, error=0.04)
    assert not is_faster(noisy, judgement(speedup=1.05, error=0.04))
    assert is_faster(noisy, judgement(speedup=1.07, error=0.04))


@given(st.floats(0.1, 50), st.floats(0.1, 50), st.floats(0, 0.3), st.floats(0, 0.3))
def test_of_two_steps_one_at_most_is_faster(first, second, error, other):
    one, two = judgement(speedup=first, error=error), judgement(speedup=second, error=other)
    assert not (is_faster(one, two) and is_faster(two, one))
