"""The strategy polca: its phases, prompts and options, and lost evaluations."""

from __future__ import annotations

import pytest

from tilewright.errors import ConfigError
from tilewright.loop.prompts import messages_of
from tilewright.loop.prompts.material import Material
from tilewright.loop.strategies.base import Plan
from tilewright.loop.strategies.polca import make
from tilewright.records.events import EvalSummary, Reply, Turn
from tilewright.testing.strategy_checks import PROBLEM, check_strategy

PLAIN = {"summary": False, "candidates": 2, "epsilon": 0.1}


def score_of(turn):
    judgement = turn.judgements[0]
    return None if judgement.verdict == "unjudged" else judgement.speedup or 0.0


def started(turns=40, **options):
    plan = Plan(problem="p", turns=turns, options={**PLAIN, **options})
    return make(plan, score_of)


def answered(strategy, count, values, verdicts=()):
    """Answer `count` requests, one at a time; return them with their turns."""
    found, values, verdicts = {}, iter(values), iter(verdicts)
    for _ in range(count):
        (ask,) = strategy.ask(1)
        if ask.role == "draft":
            value = next(values)
            turn = Turn(
                ask=ask, source=repr(value), embedding=(value,), reply=Reply(text=f"`{value}`")
            )
        elif ask.role == "say":
            turn = Turn(ask=ask, reply=Reply(text=next(values)))
        else:
            parent = found[ask.parents[0]]
            speedup = parent.embedding[0] or None
            verdict = next(verdicts, "correct" if speedup else "incorrect")
            said = EvalSummary(protocol="strict", verdict=verdict, speedup=speedup)
            turn = parent.model_copy(update={"ask": ask, "judgements": (said,), "reply": None})
        found[ask.id] = turn
        strategy.tell(turn)
    return list(found.values())


def shape(turns):
    return [(turn.ask.role, turn.ask.operator) for turn in turns]


def test_an_iteration_measures_proposes_and_measures_what_is_new():
    turns = answered(started(), 7, [1.0, 2.0, 1.05, 3.0])
    assert shape(turns) == [
        ("draft", "begin"),
        ("draft", "begin"),
        ("measure", "explore"),
        ("measure", "explore"),
        ("draft", "propose"),
        ("draft", "propose"),
        ("measure", "admit"),
    ]
    # 1.05 is near to 1.0, so that only 3.0 is measured.
    assert turns[-1].ask.parents == (turns[5].ask.id,)
    assert turns[-1].ask.reason == "distance 1, epsilon 0.1, given"
    assert turns[4].ask.shown_turns == turns[4].ask.parents == (turns[2].ask.id,)


def test_no_request_of_the_next_phase_comes_before_the_last_result():
    strategy = started()
    first, second = strategy.ask(8)
    assert strategy.ask(8) == []
    for ask in (second, first):
        strategy.tell(Turn(ask=ask, source=ask.id, embedding=(1.0,), reply=Reply(text="x")))
    assert [ask.role for ask in strategy.ask(8)] == ["measure", "measure"]


def test_an_unjudged_trial_changes_no_estimate():
    turns = answered(started(), 9, [1.0, 2.0, 3.0, 4.0], ["correct", "unjudged"])
    explored = [turn.ask.parents[0] for turn in turns if turn.ask.operator == "explore"]
    # The program without a trial does not return to the memory.
    assert len(explored) == 3
    assert turns[8].ask.parents != (explored[1],)


def test_drafts_without_code_are_asked_for_again():
    strategy = started()
    for ask in strategy.ask(2):
        strategy.tell(Turn(ask=ask, refused="no code"))
    assert {ask.operator for ask in strategy.ask(2)} == {"begin"}


def test_a_summary_reaches_the_next_prompts_and_a_reply_without_one_keeps_it():
    strategy = started(summary=True)
    values = [1.0, 0.0, "<summary>Tiles of 64 win.</summary>", 3.0, 4.0, "nothing", 5.0, 6.0]
    turns = answered(strategy, 14, values)
    said = [turn for turn in turns if turn.ask.role == "say"]
    assert [turn.ask.form for turn in said] == ["summary", "summary"]
    shown = [set(turn.ask.shown_turns) for turn in said]
    assert shown[0]
    assert not shown[0] & shown[1]
    assert said[1].ask.instruction == "Tiles of 64 win."
    proposals = [turn.ask for turn in turns if turn.ask.operator == "propose"]
    assert len(proposals) >= 2
    assert all("Tiles of 64 win." in ask.instruction for ask in proposals)


def test_a_prompt_shows_the_measured_program_and_its_feedback():
    turns = answered(started(), 5, [1.0, 2.0, 3.0])
    trial = turns[2].model_copy(update={"code": "def candidate(): ...", "feedback": "It is slow."})
    messages = messages_of(Material(PROBLEM, shown=[trial]))
    assert "def candidate(): ..." in messages[1].text
    assert "It is slow." in messages[2].text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": -1}, "option 'epsilon': -1 is no distance"),
        ({"candidates": 20}, "option 'candidates': 20 programs need at least 42 requests"),
        ({"candidates": 0}, "option 'candidates'"),
        ({"priority": "time"}, "option 'priority'"),
    ],
)
def test_options_that_cannot_work_are_refused_by_name(options, message):
    with pytest.raises(ConfigError, match=message):
        started(**options)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"epsilon": 0, "proposals": 2},
        {"epsilon": "calibrate", "calibration": 4},
        {"rules": "corrected", "priority": "ucb"},
        {"validate_explored": True, "merge_every": 2},
    ],
)
def test_the_rules_of_strategies_hold(options):
    check_strategy(make, options)
