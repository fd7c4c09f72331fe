"""Order of the server's queue: priority, then fairness among clients, then cached judges. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from types import MappingProxyType
from typing import Literal

from tilewright.executors.scheduling import next_request
from tilewright.serve.store.tables import Task

State = Literal["queued", "running", "done", "failed", "cancelled"]
PRIORITIES = {"low": 0, "normal": 1, "high": 2}
MAX_SCANNED = 64
"""Queued tasks of one client in which the server looks for a cached problem."""


def choose(
    waiting: Mapping[str, Sequence[Task]],
    turns: Sequence[str],
    running: Set[str],
    skips: Mapping[str, int] = MappingProxyType({}),
) -> Task | None:
    """Return the task that starts next, or `None` if no task waits.

    Tasks of the highest priority come first. Among their clients comes the one that was served
    longest ago, by `turns`, which has the latest last. Among its tasks
    `executors.scheduling.next_request` decides, by the problems that run, whose judges are cached,
    and by how often the oldest task was skipped.
    """
    heads = {client: tasks[0] for client, tasks in waiting.items() if tasks}
    if not heads:
        return None
    highest = max(head.priority for head in heads.values())
    served = {client: place for place, client in enumerate(turns)}
    client = min(
        (name for name, head in heads.items() if head.priority == highest),
        key=lambda name: (served.get(name, -1), heads[name].sequence),
    )
    own = [task for task in waiting[client][:MAX_SCANNED] if task.priority == highest]
    index = next_request([(task.problem, skips.get(task.key, 0)) for task in own], running)
    return None if index is None else own[index]
