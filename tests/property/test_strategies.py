"""Strategies and the driver: budgets hold, each request finishes once, replays are exact."""

import itertools
import tempfile
from pathlib import Path
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.loop.budget import Budget, BudgetGuard, Usage, usage_of
from tilewright.loop.driver import drive, replay
from tilewright.loop.history import RecordedHistory
from tilewright.loop.strategies import beam, best_of_n, greedy, sequential
from tilewright.loop.strategies.base import Plan, RoundRobin
from tilewright.records.event_log import EventLog, read_events
from tilewright.records.events import (
    EvalSummary,
    Reply,
    RequestsIssued,
    RunStarted,
    Turn,
    TurnFinished,
)
from tilewright.scoring.rewards import tilewright

BEGUN = RunStarted(
    kind="optimize", name="x", problems="p", protocols=("strict",), evaluator="0", device="cpu"
)
MAKERS = {
    "best_of_n": (best_of_n.make, {}),
    "greedy": (greedy.make, {}),
    "beam": (beam.make, {"width": 2, "branches": 2}),
    "last_w": (sequential.make, {"context": "last_w", "w": 2}),
    "top_w": (sequential.make, {"context": "top_w", "w": 2}),
    "best_window": (sequential.make, {"context": "best_window", "w": 2}),
    "vanilla": (sequential.make, {"context": "vanilla"}),
}
NAMES = st.sampled_from(sorted(MAKERS))


def score(turn):
    return tilewright(turn.judgements[0])


def fresh(name, problems=1, samples=1, turns=6):
    make, options = MAKERS[name]
    plans = [
        Plan(problem=f"p{p}", sample=s, turns=turns, options=options)
        for p in range(problems)
        for s in range(samples)
    ]
    return RecordedHistory(RoundRobin([make(plan, score) for plan in plans]))


def played(ask, seed=0):
    """Return a turn that depends on nothing but its ask."""
    rng = Random(f"{seed} {ask.id}")
    verdict = rng.choice(["correct", "correct", "incorrect", "failed", "unjudged"])
    speed = rng.uniform(0.2, 4.0) if verdict == "correct" else None
    judged = EvalSummary(
        protocol="strict", verdict=verdict, speedup=speed, low=speed, seconds=rng.uniform(0, 10)
    )
    reply = Reply(text="x", prompt_tokens=5, reply_tokens=rng.randrange(10), usd=rng.random())
    return Turn(ask=ask, reply=reply, judgements=(judged,))


def run(folder, strategy, max_concurrency, **options):
    with EventLog(folder) as log:
        return list(drive(strategy, played, log, max_concurrency=max_concurrency, **options))


@settings(deadline=None, max_examples=40)
@given(NAMES, st.integers(1, 3), st.integers(1, 2), st.integers(1, 5))
def test_every_request_finishes_once_and_shows_only_finished_judged_turns(
    name, problems, samples, max_concurrency
):
    with tempfile.TemporaryDirectory() as folder:
        turns = run(Path(folder), fresh(name, problems, samples), max_concurrency)
        ids = [turn.ask.id for turn in turns]
        assert len(ids) == len(set(ids)) == problems * samples * 6
        told: dict[str, Turn] = {}
        for event in read_events(Path(folder)):
            if isinstance(event, TurnFinished):
                told[event.turn.ask.id] = event.turn
            elif isinstance(event, RequestsIssued):
                for ask in event.asks:
                    for shown in ask.shown_turns:
                        assert told[shown].judgements[0].verdict != "unjudged"
                        assert told[shown].ask.problem == ask.problem


@settings(deadline=None, max_examples=60)
@given(NAMES, st.integers(1, 3), st.integers(1, 4), st.integers(0, 40), st.integers(1, 4))
def test_a_run_that_was_cut_anywhere_resumes_with_the_same_requests(
    name, problems, max_concurrency, cut, then
):
    with tempfile.TemporaryDirectory() as folder:
        whole = run(Path(folder), fresh(name, problems), max_concurrency)
        events = list(read_events(Path(folder)))
    with tempfile.TemporaryDirectory() as folder:
        kept = events[:cut]
        with EventLog(Path(folder)) as log:
            for event in kept:
                log.append(event)
        again = fresh(name, problems)
        waiting = replay(again, kept)
        rest = run(Path(folder), again, then, waiting=waiting)
        before = [event.turn for event in kept if isinstance(event, TurnFinished)]
    assert {t.ask.id: t for t in [*before, *rest]} == {t.ask.id: t for t in whole}


BUDGETS = st.builds(
    Budget,
    turns=st.none() | st.integers(0, 12),
    tokens=st.none() | st.integers(0, 200),
    device_s=st.none() | st.floats(0, 200),
    usd=st.none() | st.floats(0, 10),
)


@settings(deadline=None, max_examples=60)
@given(NAMES, BUDGETS, st.integers(1, 5))
def test_no_dimension_of_the_budget_is_exceeded(name, budget, max_concurrency):
    most = Usage(turns=1, tokens=15, usd=1.0)
    guard = BudgetGuard(budget, (), lambda _: most, eval_timeout_s=10.0)
    with tempfile.TemporaryDirectory() as folder, EventLog(Path(folder)) as log:
        turns = []
        strategy = fresh(name, 2)
        for turn in drive(
            strategy, played, log, max_concurrency=max_concurrency, admit=guard.reserve
        ):
            guard.commit(turn)
            turns.append(turn)
            assert not budget.exceeded(usage_of(turns))
    assert guard.spent == usage_of(turns)
    assert guard.lacking or len(turns) == 12


@settings(deadline=None, max_examples=40)
@given(NAMES, st.integers(0, 1000))
def test_the_best_so_far_never_gets_worse(name, seed):
    strategy, best = fresh(name), 0.0
    while asks := strategy.ask(1):
        turn = played(asks[0], seed)
        strategy.tell(turn)
        marks = [score(item) or 0.0 for item in strategy.turns.values()]
        assert max(marks) >= best
        best = max(marks)


@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 9))
def test_capacity_is_shared_round_robin(members, turns, limit):
    strategy = fresh("best_of_n", members, turns=turns)
    asked = list(itertools.chain.from_iterable(iter(lambda: strategy.ask(limit), [])))
    counts = [0] * members
    for ask in asked:
        counts[int(ask.problem[1:])] += 1
        assert max(counts) - min(counts) <= 1
    assert counts == [turns] * members
