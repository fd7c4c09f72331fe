"""The state of each task at this server, the one function that changes it, and the queue order."""

from __future__ import annotations

import bisect
import enum
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from tilewright.executors.scheduling import next_request
from tilewright.serve.store.tables import Task

MAX_SCANNED = 64
"""Queued tasks of one client in which the server looks for a cached problem."""


class Phase(enum.Enum):
    """The phase of a task."""

    QUEUED = enum.auto()
    RUNNING = enum.auto()
    CANCELLING = enum.auto()
    """All clients have cancelled the task; its evaluation ends at its next event."""
    ENDED = enum.auto()


NEXT_PHASES = {
    Phase.QUEUED: {Phase.RUNNING, Phase.ENDED},
    Phase.RUNNING: {Phase.QUEUED, Phase.CANCELLING, Phase.ENDED},
    Phase.CANCELLING: {Phase.QUEUED, Phase.ENDED},
    Phase.ENDED: {Phase.QUEUED},
}


@dataclass(eq=False)
class TaskState:
    """All that the dispatcher knows of one task."""

    item: Task
    clients: set[str] = field(default_factory=set)
    """Clients in whose queues the task waits, in addition to that of its item."""
    phase: Phase = Phase.ENDED
    skips: int = 0
    """Times that a later task of a client started before it."""
    again: Task | None = None
    """The task was submitted again while it runs, so it is queued again when the run ends."""
    entries: list[Task] = field(default_factory=list)
    """Its entries in the queues of its clients."""


class TaskStates:
    """Queued and running tasks. Lifetime: the dispatcher, which calls it with its lock held."""

    def __init__(self) -> None:
        self._tasks: dict[str, TaskState] = {}
        self.running: dict[str, TaskState] = {}
        """The tasks that run or are being cancelled, by key."""
        self._queues: dict[str, list[Task]] = {}
        """Entries of queued tasks by client, in their order."""
        self._served: list[str] = []
        """Clients in the order in which they were last served, the latest last."""

    @property
    def waiting(self) -> int:
        """Number of queued tasks."""
        return len(self._tasks) - len(self.running)

    def waiting_by_client(self) -> dict[str, int]:
        """Return the number of queued tasks of each client that has any."""
        return {client: len(own) for client, own in self._queues.items() if own}

    def move(self, task: TaskState, phase: Phase) -> None:
        """Change the phase of a task, and the queues with it. Nothing else changes a phase."""
        if phase not in NEXT_PHASES[task.phase]:
            raise ValueError(f"{task.item.key}: from {task.phase} to {phase}")
        key = task.item.key
        for entry in task.entries:
            queue = self._queues[entry.client]
            del queue[bisect.bisect_left(queue, _order(entry), key=_order)]
        task.phase, task.entries = phase, []
        self.running.pop(key, None)
        if phase is Phase.QUEUED:
            self._tasks[key], task.skips = task, 0
            for client in task.clients | {task.item.client}:
                entry = replace(task.item, client=client)
                task.entries.append(entry)
                bisect.insort(self._queues.setdefault(client, []), entry, key=_order)
        elif phase is Phase.ENDED:
            del self._tasks[key]
        else:
            self.running[key] = task

    def queue(self, item: Task, client: str = "") -> None:
        """Queue a task, also for `client`; a running task is queued again when its run ends."""
        task = self._tasks.get(item.key) or TaskState(item)
        if client:
            task.clients.add(client)
        if item.key in self.running:
            task.again = item
            return
        if task.phase is Phase.QUEUED:
            self.move(task, Phase.ENDED)
        task.item = item
        self.move(task, Phase.QUEUED)

    def cancel(self, key: str) -> None:
        """Drop a queued task, and mark a running one as cancelled."""
        task = self._tasks.get(key)
        if task is None:
            return
        task.again = None
        task.clients.clear()
        if task.phase is Phase.QUEUED:
            self.move(task, Phase.ENDED)
        elif task.phase is Phase.RUNNING:
            self.move(task, Phase.CANCELLING)

    def finish(self, task: TaskState, *, repeat: bool, queue: bool) -> None:
        """End the run of a task; `queue` it again to `repeat` it, or if it was submitted again."""
        again = task.again or (task.item if repeat else None)
        if again is None or not queue:
            self.move(task, Phase.ENDED)
            return
        task.item, task.again = again, None
        self.move(task, Phase.QUEUED)

    def next(self) -> Task | None:
        """Return the entry of the task that starts next."""
        running = {task.item.problem for task in self.running.values()}
        heads = [own[0].key for own in self._queues.values() if own]
        skips = {key: self._tasks[key].skips for key in heads}
        return choose(self._queues, self._served, running, skips)

    def serve(self, entry: Task) -> TaskState:
        """Note that a client is served with a task, and return the task."""
        head = self._queues[entry.client][0]
        if head is not entry:
            self._tasks[head.key].skips += 1
        self._served = [*(name for name in self._served if name != entry.client), entry.client]
        return self._tasks[entry.key]

    def late(self, now: float) -> list[TaskState]:
        """Return the queued tasks whose deadline has passed."""
        queued = [task for task in self._tasks.values() if task.phase is Phase.QUEUED]
        return [task for task in queued if task.item.deadline and task.item.deadline < now]


def _order(item: Task) -> tuple[int, int]:
    return -item.priority, item.sequence


def choose(
    waiting: Mapping[str, Sequence[Task]],
    turns: Sequence[str],
    running: Set[str],
    skips: Mapping[str, int] = MappingProxyType({}),
) -> Task | None:
    """Return the task that starts next, or `None` if no task waits.

    It has the highest priority, and its client was served longest ago; `turns` has the latest last.
    Among the client's tasks, `executors.scheduling.next_request` decides by the `running` problems,
    whose judges are cached, and by how often the oldest task was skipped.
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
