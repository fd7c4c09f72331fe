"""MTMC: actions by probability, one change at a time, failures that change no program, and ends."""

from __future__ import annotations

import random
import statistics

import pytest

from tests.action_programs import PROGRAMS
from tests.search_turns import judged
from tilewright.errors import ConfigError
from tilewright.loop.strategies import best_of_n
from tilewright.loop.strategies.base import Plan
from tilewright.loop.strategies.mtmc import make
from tilewright.records.events import Choice, Reply, Turn

TWO_KERNELS = next(case for case in PROGRAMS if case.name == "two kernels in a row")
ONE_OPERATOR = next(case for case in PROGRAMS if case.name == "one operator")


def fresh(turns=60, seed=0, **options):
    return make(Plan(problem="p", turns=turns, seed=seed, options=options), lambda _: None)


def chosen(ask, text, logprobs=()):
    choice = Choice(taken=ask.choices.index(text), logprobs=logprobs)
    return Turn(ask=ask, reply=Reply(text=text), choice=choice)


def next_of(strategy):
    """Return the one request; a second one has to wait for its result."""
    asks = strategy.ask(4)
    assert len(asks) == 1
    assert strategy.ask(4) == []
    return asks[0]


def begun(**options):
    """Return a strategy whose current program has two kernels."""
    strategy = fresh(**options)
    strategy.tell(judged(next_of(strategy), TWO_KERNELS.code, speedup=1.0))
    return strategy


def test_an_initial_program_comes_first_and_is_written_again_until_it_is_correct():
    strategy = fresh()
    for verdict in ("failed", "incorrect", "unjudged", "rejected"):
        ask = next_of(strategy)
        assert (ask.operator, ask.policy, ask.form) == ("initial", "coder", "conversation")
        strategy.tell(judged(ask, TWO_KERNELS.code, verdict))
    strategy.tell(judged(next_of(strategy), TWO_KERNELS.code, speedup=1.0))
    assert next_of(strategy).role == "choose"


def test_the_decider_chooses_among_the_legal_actions_and_the_coder_carries_one_out():
    strategy = begun()
    ask = next_of(strategy)
    assert ask.choices == (*TWO_KERNELS.actions, "stop")
    assert (ask.policy, ask.parents) == ("decider", ("p#0.0",))
    strategy.tell(chosen(ask, "reorder the matmul kernel"))
    change = next_of(strategy)
    assert (change.role, change.form, change.policy) == ("propose", "action", "coder")
    assert change.instruction == "reorder the matmul kernel"
    assert (change.operator, change.parents) == ("reorder", ("p#0.0",))


def test_a_correct_change_moves_and_a_failed_one_stays_and_joins_the_history():
    strategy = begun()
    strategy.tell(chosen(next_of(strategy), "retile the relu kernel"))
    failed = next_of(strategy)
    strategy.tell(judged(failed, "x = 1", "failed"))
    ask = next_of(strategy)
    assert (ask.parents, ask.shown_turns) == (("p#0.0",), (failed.id,))
    strategy.tell(chosen(ask, "retile the relu kernel"))
    better = next_of(strategy)
    strategy.tell(judged(better, TWO_KERNELS.code.replace("64", "128"), speedup=1.5))
    ask = next_of(strategy)
    assert (ask.parents, ask.shown_turns) == ((better.id,), (failed.id, better.id))


def test_an_unjudged_change_is_no_step_and_no_history():
    strategy = begun(max_steps=1)
    strategy.tell(chosen(next_of(strategy), "retile the relu kernel"))
    lost = next_of(strategy)
    strategy.tell(judged(lost, TWO_KERNELS.code, "unjudged"))
    again = next_of(strategy)
    assert (again.role, again.instruction) == ("propose", "retile the relu kernel")


def test_probabilities_decide_and_without_them_the_named_choice_does():
    count = len(TWO_KERNELS.actions) + 1
    # By the sum the last action wins, by the mean per token the first one does.
    logprobs = ((-0.1, -0.2, -0.3), *[(-9.0,)] * (count - 3), (-0.05, -0.4), (-9.0,))
    for options, place in (({}, 0), ({"normalisation": "sum"}, count - 2)):
        strategy = begun(**options)
        strategy.tell(chosen(next_of(strategy), "stop", logprobs))
        assert next_of(strategy).instruction == TWO_KERNELS.actions[place]
    strategy = begun()
    strategy.tell(chosen(next_of(strategy), "reorder the matmul kernel"))
    assert next_of(strategy).instruction == "reorder the matmul kernel"


def test_sampled_actions_follow_the_seed_and_differ_between_seeds():
    count = len(TWO_KERNELS.actions) + 1

    def taken(seed):
        strategy = begun(seed=seed, decision="sample")
        strategy.tell(chosen(next_of(strategy), "stop", ((-1.0,),) * count))
        return next_of(strategy).instruction

    assert [taken(seed) for seed in range(20)] == [taken(seed) for seed in range(20)]
    assert len({taken(seed) for seed in range(20)}) > 3


@pytest.mark.parametrize("restart", ["initial", "best", "none"])
def test_stop_ends_a_sequence(restart):
    strategy = begun(restart=restart)
    strategy.tell(chosen(next_of(strategy), "stop"))
    asks = strategy.ask(1)
    operators = {"initial": ["initial"], "best": ["decide"], "none": []}
    assert [ask.operator for ask in asks] == operators[restart]


def test_a_sequence_has_at_most_its_steps_and_best_continues_from_the_fastest():
    strategy = begun(max_steps=3, restart="best")
    written = []
    for speedup in (1.5, 2.5, 2.0):
        strategy.tell(chosen(next_of(strategy), "retile the relu kernel"))
        ask = next_of(strategy)
        written.append(ask.id)
        code = TWO_KERNELS.code.replace("64", str(int(100 * speedup)))
        strategy.tell(judged(ask, code, speedup=speedup))
    ask = next_of(strategy)
    assert (ask.operator, ask.parents, ask.shown_turns) == ("decide", (written[1],), ())


def test_a_program_without_legal_actions_ends_its_sequence():
    strategy = fresh()
    strategy.tell(judged(next_of(strategy), ONE_OPERATOR.code, speedup=1.0, language="torch"))
    assert next_of(strategy).operator == "initial"


def test_a_program_that_a_further_trial_refutes_is_left():
    strategy = begun()
    again = strategy.ask(1)[0].model_copy(update={"id": "m", "role": "measure"})
    strategy.tell(judged(again, TWO_KERNELS.code, "incorrect"))
    strategy.tell(chosen(again.model_copy(update={"role": "choose"}), "retile the relu kernel"))
    assert next_of(strategy).operator == "initial"


def calls_until_done(strategy, edits, chance, draw, *, at_once):
    """Return how many programs a clumsy coder writes until one has all edits."""
    done, calls = {(): 0}, 0
    while True:
        ask = strategy.ask(1)[0]
        if ask.role == "choose":
            strategy.tell(Turn(ask=ask, reply=Reply(text="1"), choice=Choice(taken=0)))
            continue
        if not ask.parents and not at_once:
            done[ask.id] = 0
            strategy.tell(judged(ask, ask.id, speedup=1.0, language=""))
            continue
        calls += 1
        wanted = edits if at_once else done[ask.parents[0]] + 1
        changes = edits if at_once else 1
        if all(draw.random() < chance for _ in range(changes)):
            done[ask.id] = wanted
            if wanted == edits:
                return calls
            strategy.tell(judged(ask, ask.id, speedup=1.0 + wanted, language=""))
        else:
            strategy.tell(judged(ask, ask.id, "incorrect", language=""))


def test_one_edit_at_a_time_beats_all_at_once_for_a_coder_that_errs():
    edits, chance, runs = 4, 0.6, 400

    def mean(factory, *, at_once, **options):
        plan = Plan(problem="p", turns=200, options=options)
        return statistics.fmean(
            calls_until_done(
                factory(plan, lambda _: None), edits, chance, random.Random(seed), at_once=at_once
            )
            for seed in range(runs)
        )

    one = mean(make, at_once=False, max_steps=1_000)
    whole = mean(best_of_n.make, at_once=True)
    assert one == pytest.approx(edits / chance, rel=0.05)
    assert whole == pytest.approx(chance**-edits, rel=0.15)
    assert one < whole


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"max_steps": 0}, "max_steps"),
        ({"normalisation": "letter"}, "normalisation"),
        ({"restart": "last"}, "restart"),
        ({"tau": 1.0}, "tau"),
    ],
)
def test_options_out_of_range_are_refused_by_name(options, name):
    with pytest.raises(ConfigError, match=name):
        fresh(**options)
