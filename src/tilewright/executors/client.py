"""A client of `tilewright serve`: submit, wait, follow, cancel; sync and async. Needs no torch."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import socket
import threading
import time
import urllib.error
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from tilewright import errors
from tilewright.executors._async import in_thread
from tilewright.executors.remote import WAIT_S, RemoteExecutor, refused
from tilewright.records import EvalReport, EvalRequest

__all__ = ["Client", "TaskEvent"]

OPEN = ("queued", "running")
TOGETHER, TOGETHER_BYTES = 100, 3 << 20
PAUSE_S = 0.5


@dataclass(frozen=True)
class TaskEvent:
    """Something that happened to a task."""

    kind: str
    """`state` first; then `running`, `stage`, `sample`, `timing`, `judged` ...; `ended` last."""
    fields: dict[str, Any]
    """Of `state` and `ended`: the task itself."""
    place: str
    """Where in its story it stands."""


class _Listener:
    """Who follows a task, and may leave from another thread. Lifetime: that it follows."""

    def __init__(self) -> None:
        self.left = False
        self._lock = threading.Lock()
        self._answer: Any = None
        self.heard = time.monotonic()
        """When the server last sent something: while a task waits that is no event of it."""

    def lines(self, answer: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the lines of an answer, noting when each came."""
        for line in answer:
            self.heard = time.monotonic()
            yield line

    @contextlib.contextmanager
    def hearing(self, answer: Any) -> Iterator[None]:  # noqa: ANN401 - an open answer of urllib
        """Know what is being read, for as long as it is."""
        with self._lock:
            self._answer = None if self.left else answer
        try:
            yield
        finally:
            with self._lock:
                self._answer = None

    def leave(self) -> None:
        """Have it end, also where nothing is heard: a stream that stays open takes a place."""
        with self._lock:
            self.left = True
            if self._answer is None:
                return
            # Closed it would still be waited for; this wakes who reads. It may be over by now.
            with (
                contextlib.suppress(OSError, ValueError),
                socket.socket(fileno=os.dup(self._answer.fileno())) as own,
            ):
                own.shutdown(socket.SHUT_RDWR)


class Client(RemoteExecutor):
    """Tasks of a server, by key or by your name. Lifetime: as you like; it holds nothing open.

    What is sent twice, since an answer was lost, is one task. Every call asks again while the
    server is not there, for `patience_s` seconds, and while it has no room, for as long as it says
    so. Each that ends in `_async` is the same for an event loop, which it does not block; as many
    of them as you like are under way at once.
    """

    def submit(
        self,
        request: EvalRequest,
        *,
        name: str | None = None,
        priority: str = "normal",
        deadline_s: float | None = None,
    ) -> str:
        """Have a candidate judged; return the task's key once it is on the server's disk.

        Raises:
            ConfigError: the server refuses it, or the name stands for other work.
            InfrastructureError: it is not reached.
        """
        body = _submission(request, name, priority, deadline_s)
        return str(self._asked("POST", "/v1/tasks", body)["key"])

    def submit_many(
        self, requests: Iterable[EvalRequest], *, priority: str = "normal"
    ) -> list[str]:
        """Have several judged; return their keys in order.

        Raises:
            ConfigError: the server refuses one; those before it are accepted.
            InfrastructureError: it is not reached.
        """
        keys: list[str] = []
        bodies, size = list[dict[str, Any]](), 0
        for request in requests:
            body = _submission(request, None, priority, None)
            more = len(json.dumps(body))
            if bodies and (len(bodies) == TOGETHER or size + more > TOGETHER_BYTES):
                keys += self._submit_together(bodies)
                bodies, size = [], 0
            bodies.append(body)
            size += more
        return keys + (self._submit_together(bodies) if bodies else [])

    def _submit_together(self, bodies: list[dict[str, Any]]) -> list[str]:
        try:
            return [str(row["key"]) for row in self._asked("POST", "/v1/tasks/batch", bodies)]
        except errors.TooLarge:
            if len(bodies) == 1:
                raise
        half = len(bodies) // 2
        return self._submit_together(bodies[:half]) + self._submit_together(bodies[half:])

    def task(self, key: str, wait_s: float = 0.0) -> dict[str, Any]:
        """Return a task as it is, after at most `wait_s` seconds once it has ended.

        Raises:
            ConfigError: there is no such task of yours.
            InfrastructureError: the server is not reached.
        """
        until = time.monotonic() + wait_s
        while True:
            left = max(until - time.monotonic(), 0.0)
            found: dict[str, Any] = self._asked(
                "GET", f"/v1/tasks/{_quoted(key)}?wait_s={min(left, WAIT_S):g}"
            )
            if found["state"] not in OPEN or time.monotonic() >= until:
                return found

    def report(self, key: str) -> EvalReport:
        """Wait for a task's end and return its report.

        Raises:
            ProblemError: the problem cannot be used.
            ConfigError: there is no such task of yours.
            InfrastructureError: the server is not reached, or could not judge it, or it was
                cancelled.
        """
        return self._report(self.task(key, float("inf")))

    def events(self, key: str, after: str = "") -> Iterator[TaskEvent]:
        """Follow a task until it has ended, from after a place in its story on.

        Where the connection is lost it is made again and goes on where it was.

        Raises:
            ConfigError: there is no such task of yours.
            InfrastructureError: the server is not reached for `patience_s` seconds.
        """
        yield from self._followed(key, after, _Listener())

    def _followed(self, key: str, after: str, listener: _Listener) -> Iterator[TaskEvent]:
        while not listener.left:
            try:
                with self._opened(key, after) as answer, listener.hearing(answer):
                    for event in _parsed(listener.lines(answer)):
                        after = event.place
                        yield event
                        if event.kind == "ended":
                            return
            except urllib.error.HTTPError as error:
                with error:
                    said = error.read().decode(errors="replace")[:500]
                if error.code == 429:
                    listener.heard = time.monotonic()
                late = time.monotonic() - listener.heard > self._patience_s
                if error.code not in (429, 502, 503, 504) or late:
                    raise refused(self._url, error.code, said) from error
            except (OSError, http.client.HTTPException) as error:
                if time.monotonic() - listener.heard > self._patience_s:
                    raise errors.InfrastructureError(
                        f"{self._url}: not reached within {self._patience_s:g} s: {error}"
                    ) from error
            if self._over.wait(PAUSE_S):
                raise errors.InfrastructureError(f"{self._url}: not waited for any more")

    async def events_async(self, key: str, after: str = "") -> AsyncIterator[TaskEvent]:
        """Follow a task without blocking the event loop, as `events`."""
        loop = asyncio.get_running_loop()
        found: asyncio.Queue[TaskEvent | Exception | None] = asyncio.Queue()
        listener = _Listener()

        def read() -> None:
            last: Exception | None = None
            try:
                for event in self._followed(key, after, listener):
                    if listener.left:
                        return
                    loop.call_soon_threadsafe(found.put_nowait, event)
            except Exception as error:  # noqa: BLE001 - raised again where it is waited for
                last = error
            if not listener.left:
                loop.call_soon_threadsafe(found.put_nowait, last)

        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        try:
            while (item := await found.get()) is not None:
                if isinstance(item, Exception):
                    raise item
                yield item
        finally:
            listener.leave()

    def queue(self) -> dict[str, Any]:
        """Return how much waits and is being judged.

        Raises:
            InfrastructureError: the server is not reached.
        """
        found: dict[str, Any] = self._asked("GET", "/v1/queue")
        return found

    async def submit_async(
        self,
        request: EvalRequest,
        *,
        name: str | None = None,
        priority: str = "normal",
        deadline_s: float | None = None,
    ) -> str:
        """Have a candidate judged, as `submit`."""
        return await in_thread(
            lambda: self.submit(request, name=name, priority=priority, deadline_s=deadline_s)
        )

    async def submit_many_async(
        self, requests: Iterable[EvalRequest], *, priority: str = "normal"
    ) -> list[str]:
        """Have several judged, as `submit_many`."""
        return await in_thread(lambda: self.submit_many(requests, priority=priority))

    async def task_async(self, key: str, wait_s: float = 0.0) -> dict[str, Any]:
        """Return a task, as `task`."""
        return await in_thread(lambda: self.task(key, wait_s))

    async def report_async(self, key: str) -> EvalReport:
        """Wait for a task's report, as `report`."""
        return await in_thread(lambda: self.report(key))

    async def cancel_async(self, key: str) -> None:
        """Want a task no more, as `cancel`."""
        await in_thread(lambda: self.cancel(key))

    async def queue_async(self) -> dict[str, Any]:
        """Return how much waits, as `queue`."""
        return await in_thread(self.queue)

    def _opened(self, key: str, after: str) -> Any:  # noqa: ANN401 - an open answer of urllib
        more = {"last-event-id": after} if after else {}
        return self._open("GET", f"/v1/tasks/{_quoted(key)}/events", None, more)


def _quoted(key: str) -> str:
    return quote(key, safe="")


def _submission(
    request: EvalRequest, name: str | None, priority: str, deadline_s: float | None
) -> dict[str, Any]:
    return {
        "request": request.model_dump(mode="json"),
        "name": name,
        "priority": priority,
        "deadline_s": deadline_s,
    }


def _parsed(lines: Iterable[bytes]) -> Iterator[TaskEvent]:
    """Read server-sent events: fields a line, an empty line after each event."""
    fields: dict[str, str] = {}
    for line in lines:
        name, _, value = line.decode().rstrip("\r\n").partition(":")
        if name:
            fields[name] = value.removeprefix(" ")
        elif "data" in fields:
            yield TaskEvent(
                fields.get("event", "message"), json.loads(fields["data"]), fields.get("id", "")
            )
            fields = {}
