"""Takes waiting tasks to an executor, the next one first, and writes down what comes of them."""

from __future__ import annotations

import bisect
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tilewright.errors import InfrastructureError, ProblemError, RecordError
from tilewright.records import EvalReport, EvalRequest
from tilewright.serve.store import Store, Task
from tilewright.serve.tasks import Waiting, choose

__all__ = ["STILL", "Cancelled", "Dispatcher"]

STILL = "still"
"""An event that says nothing but that an evaluation goes on, and so may be ended."""

ATTEMPTS = 3
"""How often a task is judged in which our own side fails."""
PAUSE_S = 1.0
Evaluate = Callable[[EvalRequest, Callable[[str, dict[str, Any]], None]], EvalReport]


class Cancelled(Exception):
    """Nobody wants the task any more."""


class Dispatcher:
    """Judges what waits, several at once. Lifetime: the server.

    What was being judged when the last server died waits again.
    """

    def __init__(
        self,
        store: Store,
        evaluate: Evaluate,
        *,
        in_flight: int,
        told: Callable[[str], None] = lambda _: None,
        heard: Callable[[str, str, dict[str, Any]], None] = lambda _, __, ___: None,
        pause_s: float = PAUSE_S,
    ) -> None:
        self._store = store
        self._evaluate = evaluate
        self._in_flight = in_flight
        self._told = told
        self._heard = heard
        self._pause_s = pause_s
        self._changed = threading.Condition()
        self._waiting: dict[str, list[Waiting]] = {}
        self._turns: list[str] = []
        self._running: dict[str, Waiting] = {}
        self._unwanted: set[str] = set()
        self._ending = False
        self.verdicts: Counter[str] = Counter()
        """How many tasks have ended so, since the server's start."""
        for item in store.recover().result():
            self._insert(item)
        self._pool = ThreadPoolExecutor(in_flight)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def add(self, task: Task) -> None:
        """Let an accepted task wait, if it is not known already."""
        item = Waiting(task.key, task.client, task.problem, task.priority, task.sequence)
        with self._changed:
            known = task.key in self._running or item in self._waiting.get(item.client, ())
            if task.state == "queued" and not known:
                self._insert(item)
                self._changed.notify()

    def _insert(self, item: Waiting) -> None:
        own = self._waiting.setdefault(item.client, [])
        bisect.insort(own, item, key=lambda waits: (-waits.priority, waits.sequence))

    def forget(self, key: str) -> None:
        """Judge a cancelled task no further: it ends at its next step."""
        with self._changed:
            for own in self._waiting.values():
                own[:] = [item for item in own if item.key != key]
            if key in self._running:
                self._unwanted.add(key)

    def state(self) -> dict[str, Any]:
        """Return how much waits and is being judged, and whose."""
        with self._changed:
            clients = {name: len(own) for name, own in self._waiting.items() if own}
            return {
                "waiting": sum(clients.values()),
                "clients": clients,
                "running": len(self._running),
                "room": self._in_flight,
                "draining": self._ending,
            }

    def _serve(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._ending or self._next() is not None)
                item = self._next()
                if self._ending or item is None:
                    return
                self._waiting[item.client].remove(item)
                self._turns = [name for name in self._turns if name != item.client]
                self._turns.append(item.client)
                self._running[item.key] = item
            self._pool.submit(self._judge, item)

    def _next(self) -> Waiting | None:
        if len(self._running) >= self._in_flight:
            return None
        warm = {item.problem for item in self._running.values()}
        return choose(self._waiting, self._turns, warm)

    def _judge(self, item: Waiting) -> None:
        try:
            again = self._attempt(item)
        except InfrastructureError:
            # The store cannot be written: the task waits there, for the next server.
            again = False
        with self._changed:
            self._running.pop(item.key, None)
            self._unwanted.discard(item.key)
            if again and not self._ending:
                self._insert(item)
            self._changed.notify()
        self._told(item.key)

    def _attempt(self, item: Waiting) -> bool:
        """Judge a task once; tell whether it is to be judged again."""
        store, key = self._store, item.key
        if not store.begin(key).result():
            return False
        task = store.task(key)
        if task is None:
            return False
        if task.deadline is not None and time.time() > task.deadline:
            store.fail(key, "its deadline passed before it was its turn").result()
            self.verdicts["late"] += 1
            return False

        waited_s = max(time.time() - task.submitted_at, 0.0)
        self._heard(key, "running", {"attempt": task.attempts, "waited_s": waited_s})

        def seen(event: str, fields: dict[str, Any]) -> None:
            if key in self._unwanted:
                raise Cancelled(key)
            if event != STILL:
                self._heard(key, event, fields)

        try:
            report = self._evaluate(EvalRequest.from_json(store.request(key)), seen)
        except Cancelled:
            return False
        except (ProblemError, RecordError) as error:
            store.fail(key, f"{type(error).__name__}: {error}").result()
            self.verdicts["failed"] += 1
            return False
        except Exception as error:  # noqa: BLE001 - our own failure, of whatever kind
            return self._failed(task, error)
        store.finish(key, report.verdict, report.to_json().encode()).result()
        self.verdicts[report.verdict] += 1
        stages = [(item.name, item.wall_s) for item in report.stages]
        device = report.environment.device
        self._heard(key, "judged", {"verdict": report.verdict, "stages": stages, "device": device})
        return False

    def _failed(self, task: Task, error: Exception) -> bool:
        said = f"{type(error).__name__}: {error}"
        self._heard(task.key, "trouble", {"attempt": task.attempts, "message": said[:500]})
        # What is ended together with the server was no failure; the next one judges it.
        if task.attempts >= ATTEMPTS and not self._ending:
            self._store.fail(task.key, f"unjudged after {task.attempts} attempts: {said}").result()
            self.verdicts["unjudged"] += 1
            return False
        time.sleep(self._pause_s * task.attempts)
        self._store.requeue(task.key, said).result()
        return True

    def close(self) -> None:
        """Begin nothing more, and wait for what is being judged."""
        with self._changed:
            self._ending = True
            self._changed.notify_all()
        self._thread.join()
        self._pool.shutdown()
