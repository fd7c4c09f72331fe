"""A search as its log tells it equals what the search itself knew."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.scoring.test_strategy_table import turn_of
from tilewright.loop.history import RecordedHistory
from tilewright.loop.strategies.base import FixedList, Plan
from tilewright.loop.strategies.trajectory import LimitedTrajectory, TrajectoryLimits
from tilewright.records.events import Ask, Turn
from tilewright.reports.search_progress import SearchProgress

SPEEDS = st.sampled_from([None, 1.0, 1.5, 2.0, 3.0])


def test_a_request_sees_the_estimates_and_the_failures_of_its_own_time():
    asks = [
        Ask(id=f"next {number}", problem="p", form="evolve", parents=("p#0.0",))
        for number in range(2)
    ]
    progress = SearchProgress()
    progress.finished(turn_of(0, 0, 2.0))
    progress.issued(asks[:1])
    progress.finished(turn_of(0, 1, 8.0, role="measure", parents=("p#0.0",), source="0 0"))
    progress.finished(turn_of(0, 2, None, parents=("p#0.0",)))
    progress.issued(asks[1:])
    early, late = (progress.at(ask) for ask in asks)
    assert len(early.estimates["p#0.0"].trials) == 1
    assert early.failed == ()
    assert len(late.estimates["p#0.0"].trials) == 2
    assert late.failed == ("incorrect: ",)
    assert progress.at(Ask(id="unknown", problem="p")).estimates == {}


@st.composite
def turns(draw: st.DrawFn) -> list[Turn]:
    """Draw programs, and trials of earlier programs."""
    made: list[Turn] = []
    for number in range(draw(st.integers(1, 12))):
        speed = draw(SPEEDS)
        measured = draw(st.integers(0, number)) if number else 0
        writers = [turn for turn in made if turn.ask.role == "propose"]
        if measured and writers:
            before = writers[measured % len(writers)]
            more = {"role": "measure", "parents": (before.ask.id,), "source": before.source}
            made.append(turn_of(0, number, speed, **more))
        else:
            made.append(turn_of(0, number, speed))
    return made


@given(turns())
def test_the_leader_is_the_candidate_that_the_trajectory_would_measure_at_its_end(made):
    plan = Plan(problem="p", turns=len(made))
    limits = TrajectoryLimits(final_trials=1)
    search = LimitedTrajectory(FixedList([turn.ask for turn in made]), plan, lambda _: 0.0, limits)
    progress, leader = SearchProgress(), ""
    for turn in made:
        assert search.ask(1) == [turn.ask]
        search.tell(turn)
        if change := progress.finished(turn):
            assert change.before == leader
            leader = change.after
    final = search.ask(1)
    assert [ask.parents for ask in final] == ([(leader,)] if leader else [])


@given(turns())
def test_every_request_gets_what_the_history_of_the_search_gave_it(made):
    asks = [turn.ask.model_copy(update={"form": "evolve"}) for turn in made]
    history, progress = RecordedHistory(FixedList(asks)), SearchProgress()
    for ask, turn in zip(asks, made, strict=True):
        assert history.ask(1) == [ask]
        progress.issued([ask])
        assert progress.at(ask) == history.snapshots[ask.id]
        told = turn.model_copy(update={"ask": ask})
        history.tell(told)
        progress.finished(told)
