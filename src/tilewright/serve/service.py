"""The service behind the endpoints: accepts tasks, reports their ends, deletes old ones."""

from __future__ import annotations

import asyncio
import contextlib
import math
import secrets
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

from fastapi import HTTPException
from prometheus_client.core import Metric

from tilewright._version import __version__
from tilewright.config import Config
from tilewright.records import EvalRequest, Problem
from tilewright.records.base import digest_text
from tilewright.reports.loader import title_of_problem
from tilewright.serve.activity import Activity
from tilewright.serve.auth import AuthenticatedClient, Tokens
from tilewright.serve.dispatcher import ATTEMPT_ENDED, START_FAILED, Dispatcher, Evaluate
from tilewright.serve.prometheus_metrics import Metrics, family
from tilewright.serve.request_log import RequestLog
from tilewright.serve.schemas import PRIORITIES, Submission, Worker
from tilewright.serve.store.store import Conflict, Store
from tilewright.serve.store.tables import Submitted, Task
from tilewright.serve.task_events import EventFeed, Wakers

MAX_QUOTED = 80
"""Most characters of a client's name for a task that an answer repeats."""
RETRY_S = 5
"""Seconds in `Retry-After`."""
DISCONNECT_POLL_S = 2.0
"""Seconds between two checks whether a waiting client has disconnected."""
PRUNE_S = 60.0
"""Seconds between two deletions of old tasks."""
PRUNE_BATCH_SIZE = 500
MAX_TITLES = 1000
"""Titles of problems that the dashboard keeps."""
MAX_TITLED_CHARS = 50_000
"""Characters of a problem's source; a longer one is not parsed for its title."""
DisconnectCheck = Callable[[], Awaitable[bool]]


class Service:
    """Store, dispatcher, events and metrics of the server. Lifetime: the server."""

    def __init__(
        self,
        settings: Config,
        device: str,
        evaluate: Evaluate,
        folder: Path,
        max_concurrency: int | Callable[[], int],
        judges: int | Callable[[], int] | None = None,
        tokens: Tokens | None = None,
    ) -> None:
        """Open the store, and start its queued tasks: `max_concurrency` at once.

        At most `judges` of them (default: all) hold a device while the others prepare.
        """
        self._judges = max_concurrency if judges is None else judges
        self.settings = settings
        self.tokens = tokens
        """Each request needs one of them; `None` admits every client."""
        self.device = device
        """Model of the devices."""
        self._started_at = time.time()
        self.draining = False
        self.metrics = Metrics(self._live_metrics)
        self.request_log = RequestLog(settings.serve.log)
        self.activity = Activity()
        self.feed = EventFeed(secrets.token_hex(4))
        # Results hold for one device model and one version.
        self._by = f"{device}\n{__version__}"
        self.store = Store(folder / "tasks.db", self._by)
        self._titles: dict[str, str] = {}
        self._waiting = Wakers()
        self.dispatcher = Dispatcher(
            self.store,
            evaluate,
            max_concurrency=max_concurrency,
            on_finished=self._on_finished,
            on_event=self._on_event,
        )

    @property
    def uptime_s(self) -> float:
        return time.time() - self._started_at

    async def _title(self, problem: Problem, digest: str) -> str:
        """Return the title of a problem, read once; empty for a source that takes long to parse."""
        if digest not in self._titles:
            if len(self._titles) >= MAX_TITLES:
                self._titles.clear()
            short = len(problem.source.text) <= MAX_TITLED_CHARS
            title = await asyncio.to_thread(title_of_problem, problem) if short else ""
            self._titles[digest] = title
        return self._titles[digest]

    def _live_metrics(self) -> Iterator[Metric]:
        state, ended = self.dispatcher.state(), dict(self.dispatcher.verdicts)
        yield family("waiting", "Queued tasks.", state["waiting"])
        yield family("running", "Running tasks.", state["running"])
        yield family("max_running", "Tasks that may run at once.", state["max_running"])
        yield family("tasks", "Stored tasks by state.", self.store.counts(), "state")
        yield family("ended_total", "Tasks that ended since the start.", ended, "as")
        yield family("unjudged_total", "Ended tasks without a verdict.", ended.get("unjudged", 0))
        yield family("listeners", "Open event streams.", self.feed.listeners)
        yield family("draining", "1 while the server drains.", self.draining)
        yield family("uptime_seconds", "Seconds since the start.", self.uptime_s)

    def _on_event(self, key: str, event: str, fields: dict[str, Any]) -> None:
        if event == ATTEMPT_ENDED:
            self.activity.finished(key)
            return
        if event == START_FAILED:
            self.request_log.write("internal_error", **fields)
            return
        self.activity.tell(key, event, fields)
        if event == "running":
            self.metrics.wait_seconds.observe(fields["waited_s"])
        elif event == "internal_error":
            self.metrics.internal_errors.inc()
        elif event == "judged":
            self.metrics.judged(fields["stages"], fields["device"])
        if event in ("running", "internal_error", "judged"):
            shown = {name: value for name, value in fields.items() if name != "stages"}
            self.request_log.write(event, task=key, **shown)
        self.feed.tell(key, event, fields)

    def _on_finished(self, key: str | None = None) -> None:
        self.activity.changed()
        self._waiting.wake(key)
        self.feed.wake(key)

    def is_known(self, client: AuthenticatedClient) -> bool:
        """Tell whether a client may go on: the server uses no tokens, or its token is valid."""
        return self.tokens is None or self.tokens.knows(client)

    async def submit(self, client: AuthenticatedClient, given: Submission) -> Task:
        """Accept a submission; `HTTPException` for a forbidden field or a name that is in use."""
        request = self._admitted(given.request)
        now = time.time()
        row = Submitted(
            key=self._key(request),
            given=given.request.digest(),
            client=client.name,
            problem=request.problem.digest(),
            priority=PRIORITIES[given.priority],
            submitted_at=now,
            request=request.to_json().encode(),
            name=given.name,
            deadline=None if given.deadline_s is None else now + given.deadline_s,
        )
        try:
            task = await asyncio.wrap_future(self.store.submit(row))
        except Conflict as error:
            raise HTTPException(409, str(error)) from error
        # Before anything that can fail: the store has the task, and no other call starts it.
        self.dispatcher.add(task, client.name)
        self.metrics.accepted.inc()
        self.request_log.write("accepted", task=task.key, client=client.name, name=given.name)
        if task.submitted_at < now:
            how = "done" if task.state == "done" else "running"
            self.metrics.cache_hits.labels(how).inc()
        title = await self._title(request.problem, row.problem)
        self.activity.name(task.key, request.problem.id, title)
        return task

    def _key(self, request: EvalRequest) -> str:
        return digest_text(f"{request.digest()}\n{self._by}")

    def knows(self, given: Submission) -> bool:
        """Tell whether a submission adds no task: the same one is queued, running or done."""
        task = self.store.task(self._key(self._admitted(given.request)))
        return task is not None and not task.begins_anew

    def _admitted(self, request: EvalRequest) -> EvalRequest:
        """Return a request with the server's device, and within the server's limits."""
        candidates = [request.candidate, *(item.candidate for item in request.baselines)]
        if any(item is not None and item.allow_imports for item in candidates):
            raise HTTPException(422, "allow_imports: a client may not mount folders of the server")
        if request.seed is not None:
            raise HTTPException(422, "seed: the server draws it in secret; leave it out")
        ours, asked = self.settings.eval.limits, request.limits
        least = {
            name: min(getattr(ours, name), getattr(asked, name)) for name in type(ours).model_fields
        }
        return request.model_copy(
            update={"device": self.settings.eval.device, "limits": ours.model_copy(update=least)}
        )

    def goes_on(self, task: Task) -> bool:
        """Tell whether a task will still change at this server."""
        if self.draining:
            # The store has a task for the next server as running.
            return task.state == "running" and self.dispatcher.judges(task.key)
        return task.is_open

    def task(self, key: str | None) -> Task:
        """Return a task; 404 if there is none, or retention has deleted it."""
        found = None if key is None else self.store.task(key)
        if found is None:
            raise HTTPException(404, f"you have no task {(key or '')[:MAX_QUOTED]!r}")
        return found

    async def ended(self, key: str, wait_s: float, has_left: DisconnectCheck) -> Task:
        """Return a task once it has ended, after `wait_s`, at a drain, or if the client left."""
        until = time.monotonic() + wait_s
        with self._waiting.waiting(key) as news:
            while True:
                # Cleared before the state is read, so that no end is missed.
                news.clear()
                task = await asyncio.to_thread(self.task, key)
                left = until - time.monotonic()
                if left <= 0 or not self.goes_on(task) or await has_left():
                    return task
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(news.wait(), min(left, DISCONNECT_POLL_S))

    async def cancel(self, client: AuthenticatedClient, key: str) -> Task:
        """Cancel a task unless another client has submitted it too; return it."""
        before = self.task(key)
        for_all = client.may("admin")
        if await asyncio.wrap_future(self.store.cancel(client.name, key, for_all=for_all)):
            self.dispatcher.forget(key)
            self.request_log.write("cancelled", task=key, client=client.name)
            self._on_finished(key)
        return self.store.task(key) or before

    def workers(self) -> list[Worker]:
        """Return the workers, one for each task that can hold a device at once."""
        state, devices = self.dispatcher.state(), self.settings.eval.devices
        count = self._judges if isinstance(self._judges, int) else self._judges()
        idle = "draining" if self.draining else "idle"
        return [
            Worker(
                name=f"worker-{number}" + (f"@{devices[number % len(devices)]}" if devices else ""),
                device=self.device,
                state="busy" if number < state["running"] else idle,
            )
            for number in range(count)
        ]

    def _prune(self) -> None:
        """Delete ended tasks that are too old or too many, with their reports."""
        limits, pruned, some = self.settings.serve, 0, PRUNE_BATCH_SIZE
        before = time.time() - (limits.retention_days or math.inf) * 86_400.0
        while some == PRUNE_BATCH_SIZE and not self.draining:
            some = self.store.prune(before, limits.max_finished_tasks, PRUNE_BATCH_SIZE).result()
            pruned += some
        if pruned:
            self.metrics.expired_tasks.inc(pruned)
            self.request_log.write("pruned", tasks=pruned)

    async def keep_pruning(self) -> None:
        """Prune at intervals until the server ends."""
        while True:
            try:
                await asyncio.to_thread(self._prune)
            except Exception as error:  # noqa: BLE001 - any, or nothing would be pruned any more
                # The store may be writable in a minute, and a thread may start.
                message = f"old tasks are not deleted: {type(error).__name__}: {error}"
                self.request_log.write("internal_error", message=message)
            await asyncio.sleep(PRUNE_S)

    def drain(self) -> None:
        """Start no more tasks, answer clients that wait for queued ones, finish running tasks."""
        self.draining = True
        self.request_log.write("draining", running=self.dispatcher.state()["running"])
        self._on_finished()
        self.dispatcher.close()

    def close(self) -> None:
        """Start no more tasks, finish running ones, and close the store."""
        self.draining = True
        self.dispatcher.close()
        self.store.close()
        self.request_log.write("ended")
        self.request_log.close()
