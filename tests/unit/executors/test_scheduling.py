"""The affinity scheduler: which request starts next, and on which worker."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tilewright.executors.scheduling import (
    MAX_CACHED_PROBLEMS,
    MAX_SKIPS,
    WorkerLoad,
    assign,
    next_request,
    remembered,
)

PROBLEMS = st.sampled_from("abcdef")
WAITING = st.lists(st.tuples(PROBLEMS, st.integers(0, MAX_SKIPS)), min_size=1)
WORKERS = st.lists(
    st.builds(WorkerLoad, st.integers(0, 2), st.lists(PROBLEMS, unique=True)), min_size=1
)


def idle(*cached):
    return [WorkerLoad(0, names) for names in cached]


def test_a_request_goes_to_a_worker_that_has_cached_its_problem():
    assert assign([("a", 0), ("b", 0)], idle(("x",), ("b",)), set()) == (1, 1)


def test_a_new_problem_goes_to_the_worker_with_the_fewest_cached_problems():
    assert assign([("a", 0), ("new", 0)], idle(("x", "y"), ("z",)), {"a"}) == (1, 1)


def test_a_single_request_for_a_busy_problem_waits_and_one_of_several_does_not():
    assert assign([("a", 0), ("b", 0)], idle(("x",)), {"a", "b"}) is None
    assert assign([("a", 0), ("b", 0), ("b", 0)], idle(("x",)), {"a", "b"}) == (1, 0)


def test_a_request_that_was_skipped_too_often_goes_first():
    assert assign([("a", MAX_SKIPS), ("b", 0)], idle(("b",)), {"a"}) == (0, 0)


def test_a_cached_problem_of_a_loaded_worker_does_not_reorder_the_queue():
    workers = [WorkerLoad(1, ["b"]), WorkerLoad(0, [])]
    assert assign([("a", 0), ("b", 0)], workers) == (0, 1)


@given(WAITING, WORKERS, st.sets(PROBLEMS))
def test_every_assignment_names_a_waiting_request_and_a_least_loaded_worker(waiting, workers, busy):
    chosen = assign(waiting, workers, busy)
    if chosen is None:
        # Every problem is cached by a worker that is busy, and no two requests share one.
        assert {problem for problem, _ in waiting} <= busy
        assert len({problem for problem, _ in waiting}) == len(waiting)
        return
    index, worker = chosen
    assert 0 <= index < len(waiting)
    assert 0 <= worker < len(workers)
    assert workers[worker].load == min(item.load for item in workers)
    starved = [index for index, (_, skips) in enumerate(waiting) if skips >= MAX_SKIPS]
    assert not starved or index == starved[0]


@given(WAITING, st.sets(PROBLEMS))
def test_without_busy_problems_a_request_always_starts_and_only_a_cached_one_overtakes(
    waiting, cached
):
    index = next_request(waiting, cached)
    assert index is not None
    problem, skips = waiting[index]
    assert index == 0 or problem in cached or skips >= MAX_SKIPS


@given(st.lists(PROBLEMS, min_size=1, max_size=60), st.sets(PROBLEMS))
def test_no_request_is_skipped_more_often_than_the_limit(problems, cached):
    waiting = [(problem, 0) for problem in problems]
    while waiting:
        index = next_request(waiting, cached)
        assert index is not None
        waiting = [
            (problem, skips + (place < index))
            for place, (problem, skips) in enumerate(waiting)
            if place != index
        ]
        assert all(skips <= MAX_SKIPS for _, skips in waiting)


@given(st.lists(st.sampled_from("abcdefghijklmn"), min_size=1))
def test_a_worker_remembers_its_latest_problems_each_once(problems):
    cached: list[str] = []
    for problem in problems:
        cached = remembered(cached, problem)
        assert cached[-1] == problem
        assert len(set(cached)) == len(cached) <= MAX_CACHED_PROBLEMS
