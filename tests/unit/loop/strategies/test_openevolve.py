"""OpenEvolve and Kernel-Smith as strategies: islands, prompts, scores, lost results, options."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.search_turns import asks_of, judged, played
from tilewright.errors import ConfigError
from tilewright.loop.strategies import kernel_smith, openevolve
from tilewright.loop.strategies.base import Plan
from tilewright.loop.strategies.kernel_smith import KernelSmithOptions
from tilewright.records.codes import FailureReason, Stage
from tilewright.records.events import EvalSummary
from tilewright.testing.strategy_checks import check_strategy

SMALL = {"islands": 3, "population": 8, "elites": 3, "migration_interval": 2}
VERDICTS = ("correct", "correct", "correct", "incorrect", "failed", "unjudged")


def score_of(turn):
    judgement = turn.judgements[0]
    return None if judgement.verdict == "unjudged" else judgement.speedup or 0.0


def fresh(turns=40, seed=0, make=openevolve.make, **options):
    return make(Plan(problem="p", turns=turns, seed=seed, options=options), score_of)


def play(ask):
    draw = random.Random(ask.id)
    verdict = draw.choice(VERDICTS)
    speedup = draw.uniform(0.3, 4.0) if verdict == "correct" else None
    return judged(ask, f"{ask.id} {'x' * draw.randint(0, 60)}", verdict, speedup)


@pytest.mark.parametrize("make", [openevolve.make, kernel_smith.make])
@pytest.mark.parametrize("options", [{}, SMALL, {**SMALL, "lineage": "parent"}])
def test_the_rules_of_the_interface_hold(make, options):
    check_strategy(make, options)


def test_patches_pass_the_same_rules():
    check_strategy(openevolve.make, {"answer": "patch"}, seeds=(0,))


@settings(deadline=None)
@given(st.integers(0, 20), st.integers(1, 4))
def test_a_prompt_shows_judged_programs_of_one_search(seed, concurrency):
    turns = played(fresh(seed=seed, **SMALL), play, concurrency=concurrency)
    assert len(turns) == 40
    known = set()
    for turn in turns:
        ask = turn.ask
        if not ask.parents:
            # Nothing is known yet, so a model writes the first programs.
            assert (ask.form, ask.operator, ask.shown_turns) == ("evolve", "begin", ())
        else:
            assert len(ask.parents) == 1
            assert {*ask.parents, *ask.shown_turns} <= known
            assert ask.parents[0] not in ask.shown_turns
            # Three top ones, two of the next ranks, two inspirations.
            assert len(set(ask.shown_turns)) == len(ask.shown_turns) <= 7
            assert list(ask.shown_turns) == sorted(ask.shown_turns, key=number_of)
        if turn.judgements[0].verdict != "unjudged":
            known.add(ask.id)


def number_of(name):
    return int(name.rsplit(".", 1)[1])


def test_the_fittest_programs_of_the_island_are_shown():
    strategy = fresh(islands=1, diverse=0, explore=1.0, exploit=0.0)
    for ask in strategy.ask(5):
        # Slower ones take no cell from faster ones, so all stay.
        strategy.tell(judged(ask, ask.id, speedup=9.0 - number_of(ask.id)))
    for ask in strategy.ask(10):
        assert {"p#0.0", "p#0.1", "p#0.2"} - {*ask.parents} == {*ask.shown_turns}


def test_islands_take_turns_and_a_child_stays_where_it_was_requested():
    strategy = fresh(islands=2, migration_interval=1000)
    first = strategy.ask(1)[0]
    strategy.tell(judged(first, "first", speedup=1.0))
    # The second island is empty, so its first parent comes from elsewhere.
    second, third = strategy.ask(2)
    assert second.parents == third.parents == (first.id,)
    strategy.tell(judged(second, "second", speedup=2.0))
    strategy.tell(judged(third, "third", speedup=3.0))
    for ask in strategy.ask(20):
        own = {second.id} if number_of(ask.id) % 2 else {first.id, third.id}
        assert {*ask.shown_turns, *ask.parents} <= own


def test_children_can_follow_their_parents():
    strategy = fresh(islands=2, migration_interval=1000, lineage="parent")
    first = strategy.ask(1)[0]
    strategy.tell(judged(first, "first", speedup=1.0))
    for _ in range(10):
        ask = strategy.ask(1)[0]
        strategy.tell(judged(ask, f"child {ask.id}", speedup=2.0))
    # Nothing ever reached the second island, so its parents still come from the first one.
    sizes = [len(ask.shown_turns) for ask in strategy.ask(2)]
    assert min(sizes) >= 4


def test_a_parent_that_left_meanwhile_does_no_harm():
    strategy = fresh(islands=1, population=2, elites=1)
    begun = strategy.ask(4)
    for ask in begun:
        strategy.tell(judged(ask, f"{ask.id}", speedup=1.0))
    waiting = strategy.ask(6)
    for number, ask in enumerate(waiting):
        strategy.tell(judged(ask, f"child {'y' * number}", speedup=3.0 + number))
    left = strategy.ask(10)
    assert len(left) == 10
    assert not {name for ask in left for name in ask.parents} & {ask.id for ask in begun}


def test_lost_results_and_answers_without_code_change_no_draw():
    def asks(lost):
        strategy = fresh(islands=1)
        for ask in strategy.ask(3):
            strategy.tell(judged(ask, ask.id, speedup=1.0 + number_of(ask.id)))
        waiting = strategy.ask(2)
        for ask in waiting:
            if lost == "unjudged":
                strategy.tell(judged(ask, "lost", "unjudged"))
            elif lost == "refused":
                refused = judged(ask, "lost", "failed")
                strategy.tell(refused.model_copy(update={"source": "", "refused": "no code"}))
        return strategy.ask(5)

    assert asks("") == asks("unjudged") == asks("refused")


def test_equal_seeds_search_alike_and_others_otherwise():
    def parents(seed):
        return [ask.parents for ask in asks_of(played(fresh(seed=seed), play))]

    assert parents(1) == parents(1)
    assert parents(1) != parents(2)


@pytest.mark.parametrize(("answer", "form"), [("whole", "evolve"), ("patch", "patch")])
def test_the_answer_is_a_whole_program_or_a_patch(answer, form):
    strategy = fresh(answer=answer)
    first = strategy.ask(1)[0]
    strategy.tell(judged(first, "first", speedup=1.0))
    assert first.form == "evolve"
    assert strategy.ask(1)[0].form == form


@pytest.mark.parametrize(
    ("judgement", "score"),
    [
        ({"verdict": "failed", "code": FailureReason.BUILD, "stage": Stage.BUILD}, 0.0),
        ({"verdict": "failed", "code": FailureReason.TIMEOUT, "stage": Stage.BUILD}, 0.0),
        ({"verdict": "failed", "code": FailureReason.CRASH, "stage": Stage.CORRECTNESS}, 0.1),
        ({"verdict": "incorrect"}, 0.1),
        ({"verdict": "rejected"}, 0.0),
        ({"verdict": "correct", "speedup": 2.5}, 2.5),
        ({"verdict": "correct"}, 0.1),
        ({"verdict": "unjudged"}, None),
    ],
)
def test_kernel_smith_scores_in_three_levels(judgement, score):
    summary = EvalSummary(protocol="strict", **judgement)
    assert kernel_smith.score_of(summary, KernelSmithOptions()) == score


def test_kernel_smith_shows_a_program_that_ran_before_one_that_did_not_build():
    strategy = fresh(make=kernel_smith.make, islands=1, top=1, diverse=0, explore=1, exploit=0)
    first, second, third = strategy.ask(3)
    # The first one that is told would be the first of equal ones.
    strategy.tell(judged(third, "ccc", "rejected"))
    strategy.tell(judged(first, "aa", "incorrect"))
    strategy.tell(judged(second, "bb", "rejected"))
    for ask in strategy.ask(10):
        assert first.id in (*ask.shown_turns, *ask.parents)


def test_kernel_smith_has_no_patches():
    with pytest.raises(ConfigError, match="answer"):
        fresh(make=kernel_smith.make, answer="patch")


@pytest.mark.parametrize("make", [openevolve.make, kernel_smith.make])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"islands": 0}, "islands"),
        ({"islands": 41}, "'islands': 41 needs at least 41 requests, and there are 40"),
        ({"top": 0}, "top"),
        ({"top": 39}, "needs at least 41 requests"),
        ({"population": 3}, "give at least 5"),
        ({"explore": 0.5}, "sum is 1.2"),
        ({"features": ("memory",)}, "features"),
        ({"features": ()}, "features"),
        ({"width": 3}, "islands"),
    ],
)
def test_impossible_options_are_refused_by_name(make, options, message):
    with pytest.raises(ConfigError, match=message):
        fresh(make=make, **options)
    assert fresh(make=make, islands=40, population=40) is not None


def test_the_cells_of_the_archive_name_islands_and_writers():
    strategy = fresh(**SMALL)
    turns = played(strategy, play, concurrency=4)
    cells = strategy.cells()
    assert {cell.place.split(",")[0] for cell in cells} <= {f"island {n}" for n in (1, 2, 3)}
    assert {cell.writer for cell in cells} <= {turn.ask.id for turn in turns}
    assert len({(cell.place, cell.sample) for cell in cells}) == len(cells) > 2
