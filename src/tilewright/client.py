"""A client of `tilewright serve`: submit, wait, follow and cancel, sync and async. No torch."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tilewright import errors
from tilewright.config import Given, settings_of
from tilewright.executors.base import ignore_progress
from tilewright.executors.remote import (
    MAX_WAIT_S,
    Patience,
    RemoteExecutor,
    Steps,
    both,
)
from tilewright.problems.function_source import entry_of
from tilewright.problems.given_sources import candidate_files, is_address
from tilewright.problems.requests import build_request
from tilewright.records import Candidate, EvalReport, EvalRequest, SourceFile

if TYPE_CHECKING:
    import httpx
    from httpx_sse import ServerSentEvent

OPEN = ("queued", "running")
MAX_BATCH_TASKS, MAX_BATCH_BYTES = 100, 3 << 20
"""Tasks, and bytes of JSON, that `submit_many` sends in one request."""
EVENT_STREAM = "text/event-stream"
"""Content type of a stream of events."""
RECONNECT_S = 0.5
"""Seconds before the client opens a lost event stream again."""


@dataclass(frozen=True)
class TaskEvent:
    """An event of a task."""

    kind: str
    """`state` first; then `running`, `stage`, `sample`, `timing`, `judged` ...; `ended` last."""
    fields: dict[str, Any]
    """The fields of the event; for `state` and `ended`, those of the task."""
    place: str
    """Its position among the task's events, for the argument `after`."""


def _texts(files: Iterable[SourceFile]) -> dict[str, str]:
    """Return files as texts by path; `ConfigError` for a data file, which is no text."""
    texts = {}
    for file in files:
        if file.encoding != "utf-8":
            message = "a data file cannot be sent with an address; give the problem's source text"
            raise errors.ConfigError(f"{file.path}: {message}")
        texts[file.path] = file.text
    return texts


class Client(RemoteExecutor):
    """Tasks of a server, by their key or by your name for them. It holds no connection.

    Every method repeats its request while the server is away, as `RemoteExecutor` does. A method
    that ends in `_async` does the same without blocking the event loop; any number may run at once.

    Raises:
        ConfigError: of every method: the server refuses the request, or you have no such task.
        InfrastructureError: of every method: the server does not answer for `patience_s` seconds.
    """

    def _evaluate_given(
        self,
        candidate: EvalRequest | str | Path | Candidate | Callable[..., Any],
        problem: Any = None,  # noqa: ANN401 - as `tilewright.evaluate` takes it
        *,
        language: str | None = None,
        entry: str | None = None,
        config: Given = None,
        deadline_s: float | None = None,
    ) -> Steps[EvalReport]:
        """Submit one candidate and return its report.

        Args:
            candidate: source text, a path here, a function, a record, or a whole request.
            problem: an address at the server, source text, a path here, a record, or two functions,
                as `tilewright.evaluate` takes them. Not with a request.
            language: the language; default: detected from the source.
            entry: the exported name; default: `ModelNew` or the problem's.
            config: settings of the evaluation; default: the server's for texts, ours otherwise.
            deadline_s: seconds from now after which the task may not start any more.

        Raises:
            ProblemError: the problem cannot be used.
        """
        if isinstance(candidate, EvalRequest):
            given = problem if callable(problem) else ignore_progress
            return (yield from self._evaluate(candidate, given, deadline_s=deadline_s))
        if problem is None:
            raise errors.ConfigError("problem: give an address, source text, a path or functions")
        if config is None and isinstance(problem, str) and is_address(problem):
            if isinstance(candidate, Candidate):
                language, entry = language or candidate.language, entry or candidate.entry
            body = {
                "code": _texts(candidate_files(candidate)),
                "problem": problem,
                "language": language,
                "entry": entry or entry_of(candidate),
                "deadline_s": deadline_s,
            }
            task = yield from self._asked("POST", "/v1/evaluations", body)
            return (yield from self._report(task["key"]))
        request = build_request(
            candidate, problem, settings_of(config), language=language, entry=entry
        )
        return (yield from self._evaluate(request, deadline_s=deadline_s))

    # The base's `evaluate` takes a request alone, so the types differ.
    evaluate, evaluate_async = both(_evaluate_given)  # type: ignore[assignment]

    def _submit(
        self,
        request: EvalRequest,
        *,
        name: str | None = None,
        priority: str = "normal",
        deadline_s: float | None = None,
    ) -> Steps[str]:
        """Submit a candidate, and return the task's key once the server has stored it.

        Raises:
            ConfigError: you use the name for another request.
        """
        body = _submission(request, priority, name=name, deadline_s=deadline_s)
        task = yield from self._asked("POST", "/v1/tasks", body)
        return str(task["key"])

    def _submit_many(
        self, requests: Iterable[EvalRequest], *, priority: str = "normal"
    ) -> Steps[list[str]]:
        """Submit several candidates, and return their keys in order.

        Raises:
            ConfigError: the server refuses one; it has accepted those before.
        """
        keys: list[str] = []
        bodies, size = list[dict[str, Any]](), 0
        for request in requests:
            body = _submission(request, priority)
            more = len(json.dumps(body))
            if len(bodies) == MAX_BATCH_TASKS or size + more > MAX_BATCH_BYTES:
                keys += yield from self._batch(bodies)
                bodies, size = [], 0
            bodies.append(body)
            size += more
        return keys + (yield from self._batch(bodies))

    def _batch(self, bodies: list[dict[str, Any]]) -> Steps[list[str]]:
        """Submit a batch, in halves where the server takes less at once."""
        if not bodies:
            return []
        try:
            rows = yield from self._asked("POST", "/v1/tasks/batch", bodies)
            return [str(row["key"]) for row in rows]
        except errors.TooLarge:
            if len(bodies) == 1:
                raise
        half = len(bodies) // 2
        first = yield from self._batch(bodies[:half])
        return first + (yield from self._batch(bodies[half:]))

    def _task(self, key: str, wait_s: float = 0.0) -> Steps[dict[str, Any]]:
        """Return a task once it has ended, or as it is after `wait_s` seconds."""
        until = time.monotonic() + wait_s
        while True:
            left = max(until - time.monotonic(), 0.0)
            path = f"{_path(key)}?wait_s={min(left, MAX_WAIT_S):g}"
            found: dict[str, Any] = yield from self._asked("GET", path)
            if found["state"] not in OPEN or time.monotonic() >= until:
                return found

    def _report(self, key: str) -> Steps[EvalReport]:
        """Wait for the end of a task and return its report.

        Raises:
            ProblemError: the problem cannot be used.
            InfrastructureError: the server could not judge it, or the task was cancelled.
        """
        return (yield from self._report_of((yield from self._task(key, float("inf")))))

    def _cancel(self, key: str) -> Steps[None]:
        """Cancel a task, by its key or your name for it."""
        yield from self._asked("DELETE", _path(key))

    def _queue(self) -> Steps[dict[str, Any]]:
        """Return the number of queued and running tasks."""
        return (yield from self._asked("GET", "/v1/queue"))  # type: ignore[no-any-return] # JSON

    submit, submit_async = both(_submit)
    submit_many, submit_many_async = both(_submit_many)
    task, task_async = both(_task)
    report, report_async = both(_report)
    cancel, cancel_async = both(_cancel)
    queue, queue_async = both(_queue)

    def events(self, key: str, after: str = "") -> Iterator[TaskEvent]:
        """Yield the events of a task after a place, until the task has ended.

        The client opens a lost connection again, and goes on after the last event.
        """
        from httpx_sse import connect_sse

        stream = _Stream(after, Patience(self._patience_s))
        with self._opened(self._httpx.Client) as client:
            while True:
                self._check_over()
                try:
                    with connect_sse(
                        client, "GET", f"{_path(key)}/events", headers=stream.headers
                    ) as source:
                        if source.response.is_error:
                            source.response.read()
                        stream.opened(source.response)
                        for item in source.iter_sse():
                            yield from stream.read(item)
                            if stream.has_ended:
                                return
                except self._httpx.HTTPError as error:
                    self._retry_after(error, stream.lost())
                self._over.wait(RECONNECT_S)

    async def events_async(self, key: str, after: str = "") -> AsyncIterator[TaskEvent]:
        """Yield the events of a task without blocking the event loop, as `events`."""
        from httpx_sse import aconnect_sse

        stream = _Stream(after, Patience(self._patience_s))
        async with self._opened(self._httpx.AsyncClient) as client:
            while True:
                self._check_over()
                try:
                    async with aconnect_sse(
                        client, "GET", f"{_path(key)}/events", headers=stream.headers
                    ) as source:
                        if source.response.is_error:
                            await source.response.aread()
                        stream.opened(source.response)
                        async for item in source.aiter_sse():
                            for event in stream.read(item):
                                yield event
                            if stream.has_ended:
                                return
                except self._httpx.HTTPError as error:
                    self._retry_after(error, stream.lost())
                await self._sleep(RECONNECT_S)


class _Stream:
    """The state of an event stream across connections. Lifetime: one call of `events`."""

    def __init__(self, after: str, patience: Patience) -> None:
        self.has_ended = False
        self._after = after
        self._patience = patience
        self._is_open = False

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the next connection."""
        return {"last-event-id": self._after} if self._after else {}

    def opened(self, response: httpx.Response) -> None:
        """Note that a connection is open, unless the server refuses it."""
        response.raise_for_status()
        # A gateway may answer with a page of its own, which tells nothing of the server.
        self._is_open = EVENT_STREAM in response.headers.get("content-type", "")

    def read(self, item: ServerSentEvent) -> Iterator[TaskEvent]:
        """Yield the event of the server, if it has data."""
        if item.data:
            self._after = item.id
            self.has_ended = item.event == "ended"
            yield TaskEvent(item.event, json.loads(item.data), item.id)

    def lost(self) -> Patience:
        """Return the patience with the server, which begins when an open connection is lost."""
        if self._is_open:
            self._patience.renew()
        self._is_open = False
        return self._patience


def _path(key: str) -> str:
    if not isinstance(key, str):
        text = f"expected the text that `submit` returned, got {type(key).__name__}"
        raise errors.ConfigError(f"key: {text}")
    return f"/v1/tasks/{quote(key, safe='')}"


def _submission(request: EvalRequest, priority: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    if not isinstance(request, EvalRequest):
        text = f"expected an EvalRequest, got {type(request).__name__}"
        raise errors.ConfigError(f"request: {text}; `evaluate` takes source text and a problem")
    return {"request": request.model_dump(mode="json"), "priority": priority, **more}
