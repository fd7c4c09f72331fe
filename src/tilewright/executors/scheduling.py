"""Affinity scheduling with a skip limit: which request starts next, and on which worker. Pure.

The local executor, the Ray executor and the server's queue all use these functions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass, field

MAX_SKIPS = 16
"""Requests that may start before an older one; then the older one starts first.

A larger value reuses cached judges more often, and lets a request wait longer.
"""
MAX_CACHED_PROBLEMS = 8
"""Problems that a worker counts as cached: a supervisor keeps as many judges on a GPU."""


@dataclass(eq=False)
class WorkerLoad:
    """The load of a worker, which executors extend."""

    load: int = 0
    """Requests that it has already."""
    cached: list[str] = field(default_factory=list)
    """Problems whose judge it keeps, the latest last."""


def next_request(
    waiting: Sequence[tuple[str, int]], cached: Set[str], busy: Set[str] = frozenset()
) -> int | None:
    """Return the index of the request that starts next, or `None` if all should wait.

    A request that was skipped `MAX_SKIPS` times comes first, then one whose problem is cached.
    Then come one whose problem is not busy, and one of several requests for the same problem. A
    single request for a busy problem waits: a new judge would start later than the busy one ends.

    Args:
        waiting: problem and number of skips of each request, oldest first.
        cached: problems that an idle worker has cached.
        busy: problems that only busy workers have cached.
    """
    counts = Counter(problem for problem, _ in waiting)
    rules = (
        lambda _, skips: skips >= MAX_SKIPS,
        lambda problem, _: problem in cached,
        lambda problem, _: problem not in busy,
        lambda problem, _: counts[problem] > 1,
    )
    for rule in rules:
        for index, row in enumerate(waiting):
            if rule(*row):
                return index
    return None


def choose_worker(problem: str, workers: Sequence[WorkerLoad]) -> int:
    """Return the index of the worker that suits a problem best.

    The least loaded worker comes first: a second request on a device mostly waits for the first.
    Among equals comes one that has cached the problem, then the one with the fewest problems.
    """
    return min(
        range(len(workers)),
        key=lambda i: (workers[i].load, problem not in workers[i].cached, len(workers[i].cached)),
    )


def assign(
    waiting: Sequence[tuple[str, int]],
    workers: Sequence[WorkerLoad],
    busy: Set[str] = frozenset(),
) -> tuple[int, int] | None:
    """Return the indices of the next request and of its worker, or `None` if all should wait.

    Only the least loaded workers count as cached; the arguments are those of `next_request`.
    """
    least = min(worker.load for worker in workers)
    cached = {name for worker in workers if worker.load == least for name in worker.cached}
    index = next_request(waiting, cached, busy)
    return None if index is None else (index, choose_worker(waiting[index][0], workers))


def remembered(cached: Sequence[str], problem: str) -> list[str]:
    """Return a worker's cached problems after it took a request for one; the latest is last."""
    return [*(name for name in cached if name != problem), problem][-MAX_CACHED_PROBLEMS:]
