"""Events of tasks: a bounded buffer per task, read by many listeners, each at its own pace.

A listener holds only a position in the buffer, so a slow listener delays no other. Where events
were dropped after its position, the server reports that to the listener.
"""

from __future__ import annotations

import contextlib
import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Event", "EventFeed", "TooMany"]

MAX_EVENTS_PER_TASK = 256
"""Kept of one task."""
MAX_TASKS = 1024
"""Tasks of which anything is kept, the latest."""
MAX_LISTENERS_PER_CLIENT = 64
"""Of one client, at once."""


class TooMany(Exception):
    """A client has too many open event streams."""


@dataclass(frozen=True)
class Event:
    """One thing that happened to a task."""

    number: int
    """Order among all events of this server."""
    kind: str
    fields: dict[str, Any]


@dataclass
class _Story:
    events: deque[Event] = field(default_factory=lambda: deque(maxlen=MAX_EVENTS_PER_TASK))
    cut: int = 0
    """The number of the last event that was dropped."""


class EventFeed:
    """The stories of tasks, and who waits for more. Lifetime: the server. Safe from threads."""

    def __init__(self, epoch: str) -> None:
        self.epoch = epoch
        """Names this server: places in the stories of an earlier one mean nothing here."""
        self._lock = threading.Lock()
        self._last = 0
        self._stories: OrderedDict[str, _Story] = OrderedDict()
        self._wakers: dict[str, list[Callable[[], None]]] = {}
        self._listeners: Counter[str] = Counter()

    def tell(self, key: str, kind: str, fields: dict[str, Any]) -> None:
        """Add an event to a task's story and wake who waits for it."""
        with self._lock:
            self._last += 1
            story = self._stories.setdefault(key, _Story())
            if len(story.events) == MAX_EVENTS_PER_TASK:
                story.cut = story.events[0].number
            story.events.append(Event(self._last, kind, fields))
            self._stories.move_to_end(key)
            while len(self._stories) > MAX_TASKS:
                self._stories.popitem(last=False)
        self.wake(key)

    def wake(self, key: str | None = None) -> None:
        """Let who listens to a task look again; without a task, everybody."""
        with self._lock:
            calls = self._wakers.values() if key is None else [self._wakers.get(key, [])]
            chosen = [call for several in calls for call in several]
        for call in chosen:
            # Its event loop may have ended.
            with contextlib.suppress(RuntimeError):
                call()

    def since(self, key: str, after: int) -> tuple[list[Event], bool]:
        """Return what happened to a task after a number, and whether something is missing."""
        with self._lock:
            story = self._stories.get(key, _Story())
            return [item for item in story.events if item.number > after], story.cut > after

    @property
    def last(self) -> int:
        """The number of the latest event."""
        with self._lock:
            return self._last

    def place_of(self, text: str | None) -> int:
        """Return the number in a `Last-Event-ID`; 0 where it is none of this server's."""
        epoch, _, number = (text or "").partition(".")
        known = epoch == self.epoch and number.isascii() and number.isdigit() and len(number) < 16
        return int(number) if known else 0

    @contextlib.contextmanager
    def listening(self, client: str, key: str, wake: Callable[[], None]) -> Iterator[None]:
        """Have `wake` called whenever something happens to a task.

        Raises:
            TooMany: the client listens to too much already.
        """
        with self._lock:
            if self._listeners[client] >= MAX_LISTENERS_PER_CLIENT:
                raise TooMany(f"{client} listens to {MAX_LISTENERS_PER_CLIENT} tasks already")
            self._listeners[client] += 1
            self._wakers.setdefault(key, []).append(wake)
        try:
            yield
        finally:
            with self._lock:
                self._listeners -= Counter({client: 1})
                left = [call for call in self._wakers[key] if call is not wake]
                self._wakers[key] = left
                if not left:
                    del self._wakers[key]

    @property
    def listeners(self) -> int:
        """How many listen."""
        with self._lock:
            return self._listeners.total()
