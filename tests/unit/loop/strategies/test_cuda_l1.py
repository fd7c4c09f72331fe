"""CUDA-L1: only correct programs are shown, slowest first, and the selection is an option."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.search_turns import asks_of, judged, played
from tilewright.errors import ConfigError
from tilewright.loop.strategies.base import Plan
from tilewright.loop.strategies.cuda_l1 import make

VERDICTS = ("correct", "correct", "correct", "incorrect", "failed", "unjudged", "rejected")


def fresh(turns=40, seed=0, **options):
    return make(Plan(problem="p", turns=turns, seed=seed, options=options), lambda _: None)


def outcome(name, seed=0):
    draw = random.Random(f"{seed}/{name}")
    verdict = draw.choice(VERDICTS)
    return verdict, draw.uniform(0.3, 4.0) if verdict == "correct" else None


def play(ask):
    verdict, speedup = outcome(ask.id)
    return judged(ask, ask.id, verdict, speedup)


@given(st.integers(0, 20), st.integers(1, 4), st.sampled_from(["buckets", "random", "best"]))
def test_prompts_show_different_correct_programs_slowest_first(seed, concurrency, selection):
    turns = played(fresh(seed=seed, selection=selection), play, concurrency=concurrency)
    assert len(turns) == 40
    finished = {}
    for turn in turns:
        shown = turn.ask.shown_turns
        speeds = [outcome(name)[1] for name in shown]
        assert None not in speeds
        assert speeds == sorted(speeds)
        assert turn.ask.parents == shown[::-1]
        assert turn.ask.form == "exemplars"
        assert len(set(shown)) == len(shown) <= 2
        if concurrency == 1:
            known = sum(done.judgements[0].verdict == "correct" for done in finished.values())
            assert len(shown) == min(2, known)
        finished[turn.ask.id] = turn


def test_best_shows_the_two_fastest():
    turns = played(fresh(selection="best"), play)
    known = {}
    for turn in turns:
        fastest = sorted(known, key=known.__getitem__)[-2:]
        assert list(turn.ask.shown_turns) == fastest
        if turn.judgements[0].speedup:
            known[turn.ask.id] = turn.judgements[0].speedup


def test_the_score_is_the_median_of_the_trials():
    strategy = fresh(selection="best", n_exemplars=1)
    first, second = strategy.ask(2)
    strategy.tell(judged(first, "one", speedup=2.0))
    strategy.tell(judged(second, "two", speedup=1.9))
    assert strategy.ask(1)[0].shown_turns == (first.id,)
    for number, speedup in enumerate((1.5, 1.6)):
        again = first.model_copy(
            update={"id": f"again{number}", "role": "measure", "parents": (first.id,)}
        )
        strategy.tell(judged(again, "one", speedup=speedup))
    # The median of 2.0, 1.5 and 1.6 is below 1.9.
    assert strategy.ask(1)[0].shown_turns == (second.id,)


def test_a_program_that_a_further_trial_refutes_is_shown_no_more():
    strategy = fresh()
    first = strategy.ask(1)[0]
    strategy.tell(judged(first, "one", speedup=2.0))
    again = first.model_copy(update={"id": "again", "role": "measure", "parents": (first.id,)})
    strategy.tell(judged(again, "one", "unjudged"))
    assert strategy.ask(1)[0].shown_turns == (first.id,)
    strategy.tell(judged(again, "one", "incorrect"))
    assert strategy.ask(1)[0].shown_turns == ()


def test_equal_code_is_one_program():
    strategy = fresh()
    for ask in strategy.ask(3):
        strategy.tell(judged(ask, "same", speedup=2.0))
    assert len(strategy.ask(1)[0].shown_turns) == 1


def test_equal_seeds_show_equal_programs_and_others_others():
    def shown(seed):
        return [ask.shown_turns for ask in asks_of(played(fresh(seed=seed), play))]

    assert shown(1) == shown(1)
    assert shown(1) != shown(2)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"n_exemplars": 0}, "n_exemplars"),
        ({"n_exemplars": 41}, "n_exemplars"),
        ({"tau": 0.0}, "tau"),
        ({"delta": -1.0}, "delta"),
        ({"selection": "worst"}, "selection"),
        ({"islands": 3}, "islands"),
    ],
)
def test_options_out_of_range_are_refused_by_name(options, name):
    with pytest.raises(ConfigError, match=name):
        fresh(**options)


def test_the_cells_of_the_archive_are_its_buckets_the_fastest_first():
    strategy = fresh()
    played(strategy, play, concurrency=4)
    cells = strategy.cells()
    lows = [float(cell.place.split("x")[0]) for cell in cells]
    assert lows == sorted(lows, reverse=True)
    assert len(cells) > 2
