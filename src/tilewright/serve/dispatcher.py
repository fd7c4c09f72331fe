"""Dispatches queued tasks to an executor in order and stores their results."""

from __future__ import annotations

import bisect
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any, TypeVar

from tilewright.errors import InfrastructureError, ProblemError, RecordError
from tilewright.executors.retrying import Backoff, retry
from tilewright.records import EvalReport, EvalRequest
from tilewright.serve.queue_policy import Waiting, choose
from tilewright.serve.store.store import Store, Task

__all__ = ["HEARTBEAT", "Cancelled", "Dispatcher"]

HEARTBEAT = "still"
"""Event without content: the evaluation still runs, so it can be cancelled here."""

LATE = "its deadline passed before its turn"
ATTEMPTS = 3
"""How often a task is judged in which our own side fails."""
RETRY_DELAY_S = 1.0
MAX_PAUSE_S = 5.0
"""Between two attempts to use a store that cannot be used."""
POLL_INTERVAL_S = 1.0
MAX_THREADS = 256
"""Threads, each of which waits for an evaluation."""
Answer = TypeVar("Answer")
Evaluate = Callable[[EvalRequest, Callable[[str, dict[str, Any]], None]], EvalReport]


class Cancelled(Exception):
    """All clients have cancelled the task."""


class _Late(Exception):
    """Others were judged first until its deadline had passed."""


class _Ending(Exception):
    """The server ends, and what is being done is left to the next one."""


class Dispatcher:
    """Judges what waits, several at once. Lifetime: the server.

    What was being judged when the last server died waits again. `max_concurrency` says how many are
    judged at once; where devices come and go it is a function, asked each time.
    """

    def __init__(
        self,
        store: Store,
        evaluate: Evaluate,
        *,
        max_concurrency: int | Callable[[], int],
        on_finished: Callable[[str], None] = lambda _: None,
        on_event: Callable[[str, str, dict[str, Any]], None] = lambda _, __, ___: None,
        retry_delay_s: float = RETRY_DELAY_S,
    ) -> None:
        self._store = store
        self._evaluate = evaluate
        self._max_concurrency = max_concurrency
        self._on_finished = on_finished
        self._on_event = on_event
        self._retry_delay_s = retry_delay_s
        self._changed = threading.Condition()
        self._waiting: dict[str, list[Waiting]] = {}
        self._keys: set[str] = set()
        """Of all that waits."""
        self._wanted_by: dict[str, set[str]] = {}
        """Whose queues a task stands in, where that is not the one client's that asked first."""
        self._served_order: list[str] = []
        self._skip_counts: Counter[str] = Counter()
        """How often tasks that are the first of their client were passed over, by key."""
        self._running: dict[str, Waiting] = {}
        self._cancelled: set[str] = set()
        self._requeue: dict[str, Waiting] = {}
        """What is wanted again, though its evaluation is still being ended or written down."""
        self._looked = 0.0
        """When waiting tasks were last asked for their deadlines."""
        self._ending = False
        self.verdicts: Counter[str] = Counter()
        """How many tasks have ended so, since the server's start."""
        self.store_errors = 0
        """Number of failed accesses to the store."""
        for item in store.recover_interrupted().result():
            self._insert(item)
        self._pool = ThreadPoolExecutor(MAX_THREADS)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def add(self, task: Task, client: str = "") -> None:
        """Let an accepted task wait; one that waits already, with what it has now.

        It waits in the queue of `client` too, who asks for it now: whoever's turn comes first.
        """
        item = Waiting(**{name: getattr(task, name) for name in Waiting.__dataclass_fields__})
        if task.state != "queued":
            return
        with self._changed:
            if client not in ("", item.client):
                self._wanted_by.setdefault(item.key, {item.client}).add(client)
            if task.key in self._running:
                self._requeue[task.key] = item
            else:
                self._remove(task.key)
                self._insert(item)
                self._changed.notify()

    def _remove(self, key: str) -> None:
        if key in self._keys:
            self._keys.discard(key)
            self._skip_counts.pop(key, None)
            for own in self._waiting.values():
                own[:] = [item for item in own if item.key != key]

    def _insert(self, item: Waiting) -> None:
        self._keys.add(item.key)
        for client in self._wanted_by.get(item.key, (item.client,)):
            own = self._waiting.setdefault(client, [])
            own_item = item if client == item.client else replace(item, client=client)
            bisect.insort(own, own_item, key=lambda waits: (-waits.priority, waits.sequence))

    def forget(self, key: str) -> None:
        """Judge a cancelled task no further: it ends at its next step."""
        with self._changed:
            self._remove(key)
            self._requeue.pop(key, None)
            self._wanted_by.pop(key, None)
            if key in self._running:
                self._cancelled.add(key)

    def judges(self, key: str) -> bool:
        """Tell whether a task is being judged here, or its end written down."""
        with self._changed:
            return key in self._running

    def state(self) -> dict[str, Any]:
        """Return how much waits and is being judged, and whose."""
        with self._changed:
            clients = {name: len(own) for name, own in self._waiting.items() if own}
            return {
                "waiting": len(self._keys),
                "clients": clients,
                "running": len(self._running),
                "max_running": self._limit(),
                "draining": self._ending,
            }

    def _serve(self) -> None:
        while True:
            with self._changed:
                # Looked at again now and then: no event reports that capacity has grown.
                self._changed.wait_for(
                    lambda: self._ending or self._next() is not None, POLL_INTERVAL_S
                )
                if self._ending:
                    return
                self._end_late()
                item = self._next()
                if item is None:
                    continue
                self._take(item)
                self._served_order = [name for name in self._served_order if name != item.client]
                self._served_order.append(item.client)
                self._running[item.key] = item
            self._pool.submit(self._judge, item)

    def _take(self, item: Waiting) -> None:
        own = self._waiting[item.client]
        if own[0] is not item:
            self._skip_counts[own[0].key] += 1
        if item.key in self._wanted_by:
            self._remove(item.key)
            return
        own.remove(item)
        self._keys.discard(item.key)
        self._skip_counts.pop(item.key, None)

    def _end_late(self) -> None:
        """Have those end that nobody wants any more, now and then."""
        if time.monotonic() < self._looked + POLL_INTERVAL_S:
            return
        self._looked, now = time.monotonic(), time.time()
        waiting = [item for own in self._waiting.values() for item in own]
        for item in waiting:
            known = item.key in self._running
            if item.deadline is not None and item.deadline < now and not known:
                self._remove(item.key)
                self._running[item.key] = item
                self._pool.submit(self._judge, item)

    def _limit(self) -> int:
        limit = (
            self._max_concurrency
            if isinstance(self._max_concurrency, int)
            else self._max_concurrency()
        )
        return min(limit, MAX_THREADS)

    def _next(self) -> Waiting | None:
        if len(self._running) >= self._limit():
            return None
        warm = {item.problem for item in self._running.values()}
        return choose(self._waiting, self._served_order, warm, self._skip_counts)

    def _judge(self, item: Waiting) -> None:
        again = False
        try:
            again = self._attempt(item)
        except _Ending:
            # It is noted as being judged, so the next server judges it.
            pass
        finally:
            with self._changed:
                self._running.pop(item.key, None)
                self._cancelled.discard(item.key)
                wanted = self._requeue.pop(item.key, item if again else None)
                if wanted is not None and not self._ending:
                    self._insert(wanted)
                else:
                    self._wanted_by.pop(item.key, None)
                self._changed.notify()
        self._on_finished(item.key)

    def _attempt(self, item: Waiting) -> bool:
        """Judge a task once; tell whether it is to be judged again.

        Raises:
            _Ending: the server ended first, or the store could not be used until then.
        """
        store, key = self._store, item.key
        begun = self._kept(lambda: store.begin(key).result() or store.pending_start(key))
        if begun is None:
            return False
        task, text = begun
        if task.deadline is not None and time.time() > task.deadline and self._ended_late(key):
            return False

        waited_s = max(time.time() - task.submitted_at, 0.0)
        self._on_event(key, "running", {"attempt": task.attempts, "waited_s": waited_s})
        try:
            report = self._evaluate(EvalRequest.from_json(text), self._progress_callback(task))
        except Cancelled:
            return False
        except _Late:
            if self._ended_late(key):
                return False
            self._kept(lambda: store.requeue(key, "").result())
            return True
        except (ProblemError, RecordError) as error:
            said = f"{type(error).__name__}: {error}"
            self._end("failed", lambda: store.fail(key, said))
            return False
        except Exception as error:  # noqa: BLE001 - our own failure, of whatever kind
            return self._failed(task, error)
        result = report.to_json().encode()
        self._end(report.verdict, lambda: store.finish(key, report.verdict, result))
        stages = [(item.name, item.wall_s) for item in report.stages]
        device = report.environment.device
        self._on_event(
            key, "judged", {"verdict": report.verdict, "stages": stages, "device": device}
        )
        return False

    def _progress_callback(self, task: Task) -> Callable[[str, dict[str, Any]], None]:
        """Return what is told of a task's evaluation; it raises where nobody waits for it.

        That is so where others are judged first until its deadline has passed.
        """
        begun = False

        def on_event(event: str, fields: dict[str, Any]) -> None:
            nonlocal begun
            if task.key in self._cancelled:
                raise Cancelled(task.key)
            if event != HEARTBEAT:
                self._on_event(task.key, event, fields)
            # Who waits for a device has not begun.
            begun = begun or event not in (HEARTBEAT, "waiting")
            if not begun and self._is_late(task):
                raise _Late(task.key)

        return on_event

    def _is_late(self, task: Task) -> bool:
        """Tell whether a task's deadline has passed; who else wants it may have moved it since."""
        if task.deadline is None or time.time() <= task.deadline:
            return False
        now = self._store.task(task.key) or task
        return now.deadline is not None and time.time() > now.deadline

    def _ended_late(self, key: str) -> bool:
        """End a task whose deadline has passed, unless somebody has moved it until that is kept."""
        ended = self._kept(lambda: self._store.expire(key, LATE).result())
        self.verdicts["late"] += ended
        return ended

    def _failed(self, task: Task, error: Exception) -> bool:
        store, said = self._store, f"{type(error).__name__}: {error}"
        self._on_event(
            task.key, "internal_error", {"attempt": task.attempts, "message": said[:500]}
        )
        if self._ending:
            # What is ended together with the server was no failure; the next one judges it.
            raise _Ending from error
        if task.attempts >= ATTEMPTS:
            said = f"unjudged after {task.attempts} attempts: {said}"
            self._end("unjudged", lambda: store.fail(task.key, said))
            return False
        self._pause(self._retry_delay_s * task.attempts)
        self._kept(lambda: store.requeue(task.key, said).result())
        return True

    def _end(self, word: str, write: Callable[[], Future[None]]) -> None:
        self._kept(lambda: write().result())
        self.verdicts[word] += 1

    def _kept(self, ask: Callable[[], Answer]) -> Answer:
        """Ask the store until it answers: a disk that is full today has room tomorrow.

        Raises:
            _Ending: the server ends first.
        """

        def retry_after(error: Exception) -> float | None:
            if not isinstance(error, InfrastructureError):
                return None
            if self._ending:
                raise _Ending from error
            self.store_errors += 1
            return 0.0

        backoff = Backoff(self._retry_delay_s, max_delay_s=MAX_PAUSE_S)
        return retry(ask, backoff, retry_after, self._pause)

    def _pause(self, seconds: float) -> None:
        """Wait, unless the server ends."""
        with self._changed:
            self._changed.wait_for(lambda: self._ending, seconds)

    def close(self) -> None:
        """Begin nothing more, and wait for what is being judged."""
        with self._changed:
            self._ending = True
            self._changed.notify_all()
        self._thread.join()
        self._pool.shutdown()
