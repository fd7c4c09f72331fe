"""Tasks as the server keeps them, and which one is next: a pure function over waiting rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

__all__ = ["PRIORITIES", "State", "Waiting", "choose"]

State = Literal["queued", "running", "done", "failed", "cancelled"]
PRIORITIES = {"low": 0, "normal": 1, "high": 2}
MAX_SCANNED = 64
"""Queued tasks of a client that are searched for one whose problem has a warm judge."""
MAX_SKIPS = 16
"""Number of times that a task with a warm judge may overtake a client's oldest task."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A task that waits, as far as its order depends on it."""

    key: str
    client: str
    problem: str
    priority: int
    sequence: int
    """Order of acceptance."""
    deadline: float | None = None
    """Until when it is wanted."""


def choose(
    waiting: Mapping[str, Sequence[Waiting]],
    turns: Sequence[str],
    warm: Set[str],
    passed: Mapping[str, int] = MappingProxyType({}),
) -> Waiting | None:
    """Return the task that is next; `None` where nothing waits.

    The highest priority first; among clients that have such tasks, whose turn was longest ago;
    of that client's, one whose problem is being judged already, for its judge is warm, then the
    oldest; that one first when it was passed over too often.

    Args:
        waiting: each client's tasks, by priority and then age.
        turns: clients, who was served longest ago first; those that are missing were never served.
        warm: problems that are being judged.
        passed: how often a client's oldest task was passed over, by its key.
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
    if passed.get(own[0].key, 0) >= MAX_SKIPS:
        return own[0]
    return next((task for task in own if task.problem in warm), own[0])
