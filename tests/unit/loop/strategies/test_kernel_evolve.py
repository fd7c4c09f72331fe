"""KernelEvolve: drafts, selectors, repair, stop rules, and the digest of tried changes."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.search_turns import judged, played
from tilewright.errors import ConfigError
from tilewright.loop.strategies.base import Plan
from tilewright.loop.strategies.kernel_evolve import make

SELECTIONS = st.sampled_from(["greedy", "uct", "evolution"])
VERDICTS = ("correct", "correct", "incorrect", "failed", "rejected", "unjudged")


def fresh(turns=40, seed=0, **options):
    options = {"stall": None, **options}
    return make(Plan(problem="p", turns=turns, seed=seed, options=options), lambda _: None)


def scripted(ask):
    draw = random.Random(ask.id)
    verdict = draw.choice(VERDICTS)
    speedup = draw.uniform(0.3, 4.0) if verdict == "correct" else None
    return judged(ask, f"program {draw.randrange(60)}", verdict, speedup)


def steady(*speedups):
    """Return a script: the n-th request gets the n-th speed-up, or fails for `None`."""

    def play(ask):
        speedup = speedups[ask.turn]
        verdict = "correct" if speedup else "failed"
        return judged(ask, f"program {ask.turn}", verdict, speedup)

    return play


@given(SELECTIONS, st.integers(0, 9), st.integers(1, 4), st.integers(1, 3))
def test_every_extension_has_a_judged_parent_in_the_tree(selection, seed, concurrency, fan_out):
    strategy = fresh(seed=seed, selection=selection, fan_out=fan_out)
    turns = played(strategy, scripted, concurrency=concurrency)
    assert len({turn.ask.id for turn in turns}) == len(turns) == 40
    drafts = [turn.ask for turn in turns[:8]]
    assert {ask.operator for ask in drafts} == {"draft"}
    assert all(ask.form == "conversation" and not ask.parents for ask in drafts)
    verdicts = {}
    for turn in turns:
        ask, judgement = turn.ask, turn.judgements[0]
        if ask.parents:
            parent = verdicts[ask.parents[0]]
            assert parent != "unjudged"
            assert ask.operator == ("improve" if parent == "correct" else "repair")
            assert ask.form == "evolve"
            assert ask.shown_turns[-1:] == ask.parents
            assert all(verdicts[name] == "correct" for name in ask.shown_turns[:-1])
        verdicts[ask.id] = judgement.verdict


@given(SELECTIONS, st.integers(0, 99), st.integers(1, 4))
def test_equal_turns_make_equal_requests(selection, seed, concurrency):
    def run():
        strategy = fresh(seed=seed, selection=selection)
        return [turn.ask for turn in played(strategy, scripted, concurrency=concurrency)]

    assert run() == run()


def test_greedy_extends_the_fittest_program():
    turns = played(fresh(8, selection="greedy", drafts=2), steady(1, 3, 2, 4, None, 1, 5, 1))
    parents = [turn.ask.parents[0][-1] for turn in turns[2:]]
    assert parents == ["1", "1", "3", "3", "3", "6"]


def test_a_program_that_fails_is_repaired_where_nothing_else_is_known():
    turns = played(fresh(6, selection="greedy", drafts=1), steady(None, None, None, None, None, 1))
    assert [turn.ask.operator for turn in turns] == ["draft", *["repair"] * 5]
    assert all("Repair" in turn.ask.instruction for turn in turns[1:])
    # The node with the fewest repairs comes first; the third one in a row is not repaired.
    parents = [turn.ask.parents[0][-1] for turn in turns[1:]]
    assert parents == ["0", "1", "2", "0", "4"]


def test_all_drafts_end_before_the_tree_grows():
    strategy = fresh(drafts=3)
    first = strategy.ask(8)
    assert len(first) == 3
    strategy.tell(judged(first[0], "a", speedup=1.0))
    strategy.tell(judged(first[1], "b", speedup=2.0))
    assert strategy.ask(8) == []
    strategy.tell(judged(first[2], "c", "unjudged"))
    assert len(strategy.ask(8)) == 8


def test_without_a_judged_draft_another_one_is_written():
    strategy = fresh(drafts=1)
    strategy.tell(judged(strategy.ask(1)[0], "a", "unjudged"))
    assert strategy.ask(1)[0].operator == "draft"


@pytest.mark.parametrize("selection", ["greedy", "uct"])
def test_unjudged_turns_change_no_tree(selection):
    def edges(unjudged):
        strategy, speeds = fresh(60, selection=selection, drafts=1), {}
        for number in range(15):
            for _ in range(unjudged if number else 0):
                strategy.tell(judged(strategy.ask(1)[0], f"lost {number}", "unjudged"))
            ask, speedup = strategy.ask(1)[0], random.Random(number).random()
            strategy.tell(judged(ask, f"program {number}", speedup=speedup))
            speeds[ask.id] = speedup, speeds[ask.parents[0]][0] if ask.parents else None
        return list(speeds.values())

    assert edges(0) == edges(2)


def test_a_prompt_tells_what_was_tried_and_what_it_led_to():
    strategy = fresh(6, selection="greedy", drafts=1)
    base = "BLOCK = 64\nSTAGES = 1"
    strategy.tell(judged(strategy.ask(1)[0], base, speedup=1.0))
    strategy.tell(judged(strategy.ask(1)[0], base.replace("64", "512"), "failed"))
    strategy.tell(judged(strategy.ask(1)[0], base.replace("64", "128"), speedup=1.5))
    strategy.tell(judged(strategy.ask(1)[0], base.replace("1", "3"), speedup=1.2))
    text = strategy.ask(1)[0].instruction
    assert "led to the current program" in text
    assert "- `BLOCK = 64` -> `BLOCK = 128`: 1.50x after 1.00x" in text
    assert "Try another one:\n- `BLOCK = 128` -> `BLOCK = 64`, `STAGES = 1` -> `STAGES = 3`" in text
    assert "512" not in text


def test_a_digest_halves_the_repetitions_of_a_writer_that_repeats_unless_told():
    def repetitions(reads):
        strategy = fresh(40, selection="greedy", drafts=1)
        seen, repeated = set(), 0
        while asks := strategy.ask(1):
            told = asks[0].instruction if reads else ""
            draw = random.Random(asks[0].id)
            values = [value for value in range(30) if f"X = {value}`:" not in told]
            code = f"X = {draw.choice(values)}"
            repeated += code in seen
            seen.add(code)
            strategy.tell(judged(asks[0], code, speedup=1.0))
        return repeated

    assert repetitions(reads=True) < repetitions(reads=False)


@pytest.mark.parametrize(
    ("options", "speedups", "stopped", "count"),
    [
        ({"stall": 3}, [1, 2, 2, 2, 2, 2], "stalled", 5),
        ({"stall": 3}, [1, 2, 1, 1, 3, 1, 1, 1], "stalled", 8),
        ({"stall": 4}, [1, 2, 1, 1, 3, 1, 1, 1], "", 8),
        ({"stall": 3}, [None, None, None, None], "stalled", 3),
        ({"threshold": 2.0}, [1, 1.9, 2.0, 3], "reached", 3),
        ({"threshold": 4.0}, [1, 1.9, 2.0, 3], "", 4),
        ({"threshold": 2.0, "stall": 2}, [1, 1, 2], "reached", 3),
    ],
)
def test_each_stop_rule_holds_exactly_where_it_should(options, speedups, stopped, count):
    strategy = fresh(len(speedups), drafts=1, **options)
    assert len(played(strategy, steady(*speedups))) == count
    assert strategy.stopped == stopped
    assert strategy.ask(1) == []


def test_a_further_trial_changes_the_fitness():
    strategy = fresh(selection="greedy", drafts=2)
    first, second = strategy.ask(2)
    strategy.tell(judged(first, "a", speedup=2.0))
    strategy.tell(judged(second, "b", speedup=1.8))
    again = first.model_copy(update={"id": "again", "role": "measure", "parents": (first.id,)})
    strategy.tell(judged(again, "a", speedup=1.0))
    assert strategy.ask(1)[0].parents == (second.id,)


def test_an_answer_without_a_program_counts_and_is_no_node():
    strategy = fresh(selection="greedy", drafts=1)
    strategy.tell(judged(strategy.ask(1)[0], "a", speedup=2.0))
    ask = strategy.ask(1)[0]
    strategy.tell(judged(ask, "", "failed").model_copy(update={"source": "", "refused": "prose"}))
    assert len(strategy._tree) == 1
    assert strategy._tree.node("p#0.0").visits == 2


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"drafts": 0}, "drafts"),
        ({"drafts": 41}, "drafts"),
        ({"selection": "best"}, "selection"),
        ({"fan_out": 0}, "fan_out"),
        ({"stall": 0}, "stall"),
        ({"width": 3}, "width"),
    ],
)
def test_options_out_of_range_are_refused_by_name(options, name):
    with pytest.raises(ConfigError, match=name):
        fresh(**options)
