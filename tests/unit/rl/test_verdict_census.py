"""The census stops in time, continues where it stopped, and stores what was judged."""

from __future__ import annotations

import threading
import time

import pytest

from tilewright.families.nano.problem_files import compositions_of
from tilewright.families.nano.program_slots import census
from tilewright.problems.imported_sets import family_problems
from tilewright.records.events import EvalSummary
from tilewright.rl.synthetic_verdicts import KEY, SyntheticEvaluator
from tilewright.rl.verdict_census import census_programs, take_census
from tilewright.rl.verdict_store import VerdictStore

PROBLEMS = family_problems("rehearsal")
PROGRAMS = list(census_programs(PROBLEMS))
FOREVER = float("inf")


class ScriptedEvaluator(SyntheticEvaluator):
    """Fails every program but some, which are unjudged; dies after a number of evaluations."""

    def __init__(self, unjudged=(), dies_after=None):
        self.seen, self.unjudged, self.dies_after = [], unjudged, dies_after

    def evaluations(self, problem, code):
        if self.dies_after is not None and len(self.seen) >= self.dies_after:
            raise KeyboardInterrupt
        self.seen.append((problem, code))
        verdict = "unjudged" if code in self.unjudged else "failed"
        return (EvalSummary(protocol="strict", verdict=verdict, reason="scripted"),)


@pytest.fixture
def store(tmp_path):
    return VerdictStore(tmp_path / "verdicts.gz", KEY)


def test_every_program_is_evaluated_once_over_several_invocations(store):
    first = ScriptedEvaluator(dies_after=10)
    with pytest.raises(KeyboardInterrupt):
        take_census(store, PROGRAMS, first, until=FOREVER)
    second, known = ScriptedEvaluator(), VerdictStore.read(store.path, KEY)
    done = take_census(known, PROGRAMS, second, until=FOREVER)
    assert (done.evaluated, done.unjudged, done.left) == (len(PROGRAMS) - 10, 0, 0)
    assert [*first.seen, *second.seen] == PROGRAMS
    assert len(VerdictStore.read(store.path, KEY)) == len(PROGRAMS)


class PairedEvaluator(SyntheticEvaluator):
    """Ends an evaluation only while another one runs."""

    def __init__(self):
        self.pair = threading.Barrier(2, timeout=20)

    def evaluations(self, problem, code):  # noqa: ARG002 - one signature
        self.pair.wait()
        return (EvalSummary(protocol="strict", verdict="failed", reason="scripted"),)


def test_workers_evaluate_at_the_same_time(store):
    programs = PROGRAMS[:6]
    done = take_census(store, programs, PairedEvaluator(), until=FOREVER, workers=2)
    assert (done.evaluated, done.left) == (6, 0)


def test_it_stops_in_time_and_counts_what_is_left(store):
    evaluator = ScriptedEvaluator()
    done = take_census(store, PROGRAMS, evaluator, until=time.monotonic())
    assert (done.evaluated, done.left) == (0, len(PROGRAMS))
    assert store.path.exists()


def test_an_unjudged_program_is_left(store):
    lost = PROGRAMS[3][1]
    done = take_census(store, PROGRAMS, ScriptedEvaluator([lost]), until=FOREVER)
    assert (done.unjudged, done.left) == (1, 1)
    again = ScriptedEvaluator()
    take_census(VerdictStore.read(store.path, KEY), PROGRAMS, again, until=FOREVER)
    assert [code for _, code in again.seen] == [lost]


class UnsteadyEvaluator(SyntheticEvaluator):
    """Finds each program correct once and incorrect once."""

    def evaluations(self, problem, code):  # noqa: ARG002 - one signature
        made = ("correct", "incorrect")
        return tuple(EvalSummary(protocol="strict", verdict=verdict) for verdict in made)


def test_a_program_that_is_correct_only_now_and_then_is_stored_as_incorrect(store):
    take_census(store, PROGRAMS[:2], UnsteadyEvaluator(), until=FOREVER)
    rows = VerdictStore.read(store.path, KEY).rows()
    assert [row.summary.verdict for row in rows] == ["incorrect"] * 2


def test_the_programs_are_those_of_the_census():
    wanted = sum(len(list(census(item))) for item in compositions_of("rehearsal"))
    assert len(PROGRAMS) == wanted
    assert {problem.id for problem, _ in PROGRAMS} == {item.id for item in PROBLEMS}
