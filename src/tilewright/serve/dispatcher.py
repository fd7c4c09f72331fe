"""Starts queued tasks on an executor in order, and stores their results."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from tilewright.errors import InfrastructureError, ProblemError, RecordError
from tilewright.executors.retrying import Backoff, retry
from tilewright.records import EvalReport, EvalRequest
from tilewright.serve.store.store import Store
from tilewright.serve.store.tables import Task
from tilewright.serve.task_states import Phase, TaskState, TaskStates

HEARTBEAT = "still"
"""Event without content: the evaluation still runs, so it can be cancelled here."""
ATTEMPT_ENDED = "attempt_ended"
"""Event for the server alone: a task is no longer evaluated, however that came."""
START_FAILED = "start_failed"
"""Event for the server alone: no queued task could be started; the dispatcher tries again."""
LATE = "its deadline passed before its turn"
ATTEMPTS = 3
"""Evaluations of a task that ends with an internal error each time."""
RETRY_DELAY_S = 1.0
"""Seconds before a second attempt to evaluate a task or to use the store."""
MAX_DELAY_S = 5.0
"""Longest delay between two attempts to use the store, in seconds."""
POLL_INTERVAL_S = 1.0
"""Seconds between two checks of deadlines and of the executor's capacity."""
MAX_THREADS = 256
"""Tasks that run at once; each waits in a thread of its own."""
Answer = TypeVar("Answer")
OnEvent = Callable[[str, dict[str, Any]], None]
Evaluate = Callable[[EvalRequest, OnEvent], EvalReport]


class Cancelled(Exception):
    """All clients have cancelled the task."""


class _Late(Exception):
    """The deadline passed while the executor ran other tasks first."""


class _Ending(Exception):
    """The server ends, and the next server continues the task."""


class Dispatcher:
    """Evaluates queued tasks, also those that ran when the last server died. Lifetime: the server.

    At most `max_concurrency` run at once; it is a function where devices come and go.
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
        self._tasks = TaskStates()
        self._deadlines_checked_at = 0.0
        self._ending = False
        self.verdicts: Counter[str] = Counter()
        """Number of tasks that ended with each verdict since the server's start."""
        self.store_errors = 0
        """Number of failed accesses to the store."""
        for item in store.recover_interrupted().result():
            self._tasks.queue(item)
        self._pool = ThreadPoolExecutor(MAX_THREADS)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def add(self, task: Task, client: str = "") -> None:
        """Queue an accepted task, also for `client`; a queued one gets its present deadline."""
        if task.state != "queued":
            return
        with self._changed:
            self._tasks.queue(task, client)
            self._changed.notify()

    def forget(self, key: str) -> None:
        """Drop a cancelled task; if it runs, its evaluation ends at its next event."""
        with self._changed:
            self._tasks.cancel(key)

    def judges(self, key: str) -> bool:
        """Tell whether a task runs here, or its end is being stored."""
        with self._changed:
            return key in self._tasks.running

    def state(self) -> dict[str, Any]:
        """Return the number of queued and running tasks, and of queued tasks by client."""
        with self._changed:
            return {
                "waiting": self._tasks.waiting,
                "clients": self._tasks.waiting_by_client(),
                "running": len(self._tasks.running),
                "max_running": self._limit(),
                "draining": self._ending,
            }

    def _serve(self) -> None:
        while not self._ending:
            try:
                with self._changed:
                    self._start_next()
            except Exception as error:  # noqa: BLE001 - any, or no task would start any more
                message = f"no task can be started: {type(error).__name__}: {error}"
                self._tell("", START_FAILED, {"message": message})
                self._pause(POLL_INTERVAL_S)

    def _start_next(self) -> None:
        """Wait until a task can start, and start it; called with the lock held."""
        # The interval: no event reports that the capacity has grown.
        self._changed.wait_for(lambda: self._ending or self._next() is not None, POLL_INTERVAL_S)
        if self._ending:
            return
        self._end_late()
        if (item := self._next()) is not None:
            self._start(self._tasks.serve(item))

    def _start(self, task: TaskState) -> None:
        self._tasks.move(task, Phase.RUNNING)
        begun: Future[None] = Future()
        try:
            self._pool.submit(self._judge, task, begun)
        except Exception:
            # The pool keeps a call for which it can start no thread, and makes it later. So the
            # call is cancelled, unless another thread has begun it already.
            if begun.cancel():
                self._tasks.move(task, Phase.QUEUED)
                raise

    def _end_late(self) -> None:
        """End queued tasks whose deadline has passed, once in an interval."""
        if time.monotonic() < self._deadlines_checked_at + POLL_INTERVAL_S:
            return
        self._deadlines_checked_at = time.monotonic()
        for task in self._tasks.late(time.time()):
            self._start(task)

    def _limit(self) -> int:
        limit = self._max_concurrency
        return min(limit if isinstance(limit, int) else limit(), MAX_THREADS)

    def _next(self) -> Task | None:
        return self._tasks.next() if len(self._tasks.running) < self._limit() else None

    def _judge(self, task: TaskState, begun: Future[None]) -> None:
        if not begun.set_running_or_notify_cancel():
            return
        repeat = False
        try:
            # At the server's end the store has the task as running: the next server continues it.
            with contextlib.suppress(_Ending):
                repeat = self._attempt(task)
        finally:
            # Before the task may begin again.
            self._tell(task.item.key, ATTEMPT_ENDED, {})
            with self._changed:
                self._tasks.finish(task, repeat=repeat, queue=not self._ending)
                self._changed.notify()
        self._on_finished(task.item.key)

    def _tell(self, key: str, event: str, fields: dict[str, Any]) -> None:
        # A listener that fails costs no task its verdict.
        with contextlib.suppress(Exception):
            self._on_event(key, event, fields)

    def _attempt(self, running: TaskState) -> bool:
        """Evaluate a task once; return whether it is to be evaluated again."""
        store, key = self._store, running.item.key
        try:
            return self._evaluated(running)
        except _Ending:
            raise
        except Exception as error:  # noqa: BLE001 - an internal error of any kind
            # The store has counted the attempts.
            return self._failed(self._stored(lambda: store.task(key)) or running.item, error)

    def _evaluated(self, running: TaskState) -> bool:
        """Do what `_attempt` does, or raise an internal error."""
        store, key = self._store, running.item.key
        begun = self._stored(lambda: store.begin(key).result() or store.pending_start(key))
        if begun is None:
            return False
        task, text = begun
        if self._stored(lambda: self._is_late(task)) and self._expired(key):
            return False
        begun_at = time.time() if task.started_at is None else task.started_at
        waited_s = max(begun_at - task.submitted_at, 0.0)
        self._tell(key, "running", {"attempt": task.attempts, "waited_s": waited_s})
        try:
            callback = self._progress_callback(running, task)
            report = self._evaluate(EvalRequest.from_json(text), callback)
        except Cancelled:
            return False
        except _Late:
            if self._expired(key):
                return False
            self._stored(lambda: store.requeue(key, "").result())
            return True
        except (ProblemError, RecordError) as error:
            kind = type(error).__name__
            reason = f"{kind}: {error}"
            self._end("failed", lambda: store.fail(key, reason, kind))
            return False
        verdict, result = report.verdict, report.to_json().encode()
        self._end(verdict, lambda: store.finish(key, verdict, result))
        stages = [(item.name, item.wall_s) for item in report.stages]
        fields = {"verdict": verdict, "stages": stages, "device": report.environment.device}
        ends = {"low": report.speedup_low, "high": report.speedup_high}
        self._tell(key, "judged", {**fields, "speedup": report.speedup, **ends})
        return False

    def _progress_callback(self, running: TaskState, task: Task) -> OnEvent:
        """Return the callback for events, which raises if the task was cancelled or is late."""
        begun = False

        def on_event(event: str, fields: dict[str, Any]) -> None:
            nonlocal begun
            if running.phase is Phase.CANCELLING:
                raise Cancelled(task.key)
            if event != HEARTBEAT:
                self._tell(task.key, event, fields)
            # A task that waits for a device has not begun.
            begun = begun or event not in (HEARTBEAT, "waiting")
            if not begun and self._is_late(task):
                raise _Late(task.key)

        return on_event

    def _is_late(self, task: Task) -> bool:
        """Tell whether a task's deadline has passed; another client may have moved it since."""
        if task.deadline is None or time.time() <= task.deadline:
            return False
        now = self._store.task(task.key) or task
        return now.deadline is not None and time.time() > now.deadline

    def _expired(self, key: str) -> bool:
        """End a task whose deadline has passed, unless a client has moved the deadline."""
        ended = self._stored(lambda: self._store.expire(key, LATE).result())
        self.verdicts["late"] += ended
        return ended

    def _failed(self, task: Task, error: Exception) -> bool:
        store, reason = self._store, f"{type(error).__name__}: {error}"
        fields = {"attempt": task.attempts, "message": reason[:500]}
        self._tell(task.key, "internal_error", fields)
        if self._ending:
            # The end of the server is no failure of the task.
            raise _Ending from error
        if task.attempts >= ATTEMPTS:
            reason = f"unjudged after {task.attempts} attempts: {reason}"
            self._end("unjudged", lambda: store.fail(task.key, reason))
            return False
        self._pause(self._retry_delay_s * task.attempts)
        self._stored(lambda: store.requeue(task.key, reason).result())
        return True

    def _end(self, verdict: str, write: Callable[[], Future[bool]]) -> None:
        self._stored(lambda: write().result())
        self.verdicts[verdict] += 1

    def _stored(self, ask: Callable[[], Answer]) -> Answer:
        """Return the answer of the store; try again until it can be used, or raise at the end."""

        def retry_after(error: Exception) -> float | None:
            if not isinstance(error, InfrastructureError):
                return None
            if self._ending:
                raise _Ending from error
            self.store_errors += 1
            return 0.0

        backoff = Backoff(self._retry_delay_s, max_delay_s=MAX_DELAY_S)
        # The server's end does not stop the retries: the store gets one more attempt.
        return retry(ask, backoff, retry_after, self._pause)

    def _pause(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._ending, seconds)

    def close(self) -> None:
        """Start no more tasks, and wait for the end of running ones."""
        with self._changed:
            self._ending = True
            self._changed.notify_all()
        self._thread.join()
        self._pool.shutdown()
