"""Events of tasks: a bounded buffer for each task, with many listeners at their own pace.

A listener holds only a position in the buffer, so a slow listener delays no other.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
import threading
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

MAX_EVENTS_PER_TASK = 256
"""Events of one task that the server keeps."""
MAX_TASKS = 1024
"""Tasks with a buffer: those with the latest events."""
MAX_DISCARDED = 16 * MAX_TASKS
"""Tasks of which the server remembers that it discarded their buffer. A running task is among them
if it has no event for so long that thousands of others do."""
MAX_LISTENERS_PER_CLIENT = 64
"""Event streams of one client that are open at once."""


class TooMany(Exception):
    """A client has too many open event streams."""


@dataclass(frozen=True)
class Event:
    """An event of a task."""

    number: int
    """Order among all events of this server."""
    kind: str
    fields: dict[str, Any]


@dataclass
class _Buffer:
    events: deque[Event] = field(default_factory=lambda: deque(maxlen=MAX_EVENTS_PER_TASK))
    cut: int = 0
    """Number of the last dropped event."""


class Wakers:
    """Coroutines that wait for news of a task. Lifetime: the server. Safe to use from threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: defaultdict[str, set[Callable[[], object]]] = defaultdict(set)

    @contextlib.contextmanager
    def waiting(self, key: str) -> Iterator[asyncio.Event]:
        """Yield an event that each call of `wake` for this task sets."""
        news = asyncio.Event()
        call = functools.partial(asyncio.get_running_loop().call_soon_threadsafe, news.set)
        with self._lock:
            self._calls[key].add(call)
        try:
            yield news
        finally:
            with self._lock:
                self._calls[key].discard(call)
                if not self._calls[key]:
                    del self._calls[key]

    def wake(self, key: str | None = None) -> None:
        """Wake the coroutines that wait for a task, or all without a key."""
        with self._lock:
            chosen = self._calls.values() if key is None else [self._calls.get(key, ())]
            calls = list(itertools.chain.from_iterable(chosen))
        for call in calls:
            # Its event loop may have ended.
            with contextlib.suppress(RuntimeError):
                call()


class EventFeed:
    """The buffers of tasks and their listeners. Lifetime: the server. Safe to use from threads."""

    def __init__(self, epoch: str) -> None:
        self.epoch = epoch
        """Name of this server process: positions of an earlier process are invalid."""
        self._lock = threading.Lock()
        self._last = 0
        self._buffers: OrderedDict[str, _Buffer] = OrderedDict()
        self._discarded: OrderedDict[str, int] = OrderedDict()
        """Number of the last dropped event of tasks whose buffer was discarded."""
        self._wakers = Wakers()
        self.wake = self._wakers.wake
        """Wakes the listeners of a task, or all listeners without a key."""
        self._listeners: Counter[str] = Counter()

    def tell(self, key: str, kind: str, fields: dict[str, Any]) -> None:
        """Add an event to a task's buffer and wake its listeners."""
        with self._lock:
            self._last += 1
            buffer = self._buffers.setdefault(key, self._empty(key))
            if len(buffer.events) == MAX_EVENTS_PER_TASK:
                buffer.cut = buffer.events[0].number
            buffer.events.append(Event(self._last, kind, fields))
            self._buffers.move_to_end(key)
            while len(self._buffers) > MAX_TASKS:
                old, dropped = self._buffers.popitem(last=False)
                self._discarded[old] = dropped.events[-1].number
                self._discarded.move_to_end(old)
            while len(self._discarded) > MAX_DISCARDED:
                self._discarded.popitem(last=False)
        self.wake(key)

    def _empty(self, key: str) -> _Buffer:
        """Return a buffer of a task that lacks what was discarded; called with the lock held."""
        return _Buffer(cut=self._discarded.get(key, 0))

    def since(self, key: str, after: int) -> tuple[list[Event], bool]:
        """Return the events of a task after a number, and whether some of them were dropped."""
        with self._lock:
            buffer = self._buffers.get(key) or self._empty(key)
            return [item for item in buffer.events if item.number > after], buffer.cut > after

    def place_of(self, text: str | None) -> int:
        """Return the number in a `Last-Event-ID`; 0 if it is not of this server process."""
        epoch, _, number = (text or "").partition(".")
        known = epoch == self.epoch and number.isascii() and number.isdigit() and len(number) < 16
        return int(number) if known else 0

    @contextlib.contextmanager
    def listening(self, client: str, key: str) -> Iterator[asyncio.Event]:
        """Yield an event that is set at each event of a task; `TooMany` beyond the limit."""
        with self._lock:
            if self._listeners[client] >= MAX_LISTENERS_PER_CLIENT:
                raise TooMany(f"{client} already has {MAX_LISTENERS_PER_CLIENT} open event streams")
            self._listeners[client] += 1
        try:
            with self._wakers.waiting(key) as news:
                yield news
        finally:
            with self._lock:
                self._listeners -= Counter({client: 1})

    @property
    def listeners(self) -> int:
        """Number of listeners."""
        with self._lock:
            return self._listeners.total()
