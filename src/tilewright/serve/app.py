"""The HTTP API: submit, wait, look, cancel. OpenAPI at `/openapi.json`."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import Depends, FastAPI, HTTPException, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tilewright import __version__
from tilewright.config import Config
from tilewright.errors import InfrastructureError
from tilewright.records import EvalReport, EvalRequest
from tilewright.records.base import digest_text
from tilewright.serve.access import LOCAL, Client, Tokens
from tilewright.serve.bounded import Bounded
from tilewright.serve.dispatcher import Dispatcher, Evaluate
from tilewright.serve.store import Conflict, Store, Submitted, Task
from tilewright.serve.tasks import PRIORITIES

__all__ = ["NAME", "Asker", "Ours", "Service", "Submission", "admitted", "create_app"]

MOST_WAIT_S = 60.0
MOST_TOGETHER = 200
RETRY_S = 5
KEY = r"^[0-9a-f]{64}$"
NAME = r"^[\w.:@/+\-]{1,100}$"


class Submission(BaseModel):
    """Work: a request as `EvalRequest`, and how it is to be treated."""

    model_config = ConfigDict(extra="forbid")

    request: EvalRequest
    name: Annotated[str, Field(pattern=NAME)] | None = None
    """What you call it. The same name with other work is a conflict."""
    priority: Literal["low", "normal", "high"] = "normal"
    deadline_s: Annotated[float, Field(gt=0)] | None = None
    """Seconds from now after which it is not begun any more."""


class TaskView(BaseModel):
    """A task as its owner sees it."""

    key: str
    """Names the work by its content."""
    state: Literal["queued", "running", "done", "failed", "cancelled"]
    verdict: str | None
    error: str | None
    attempts: int
    priority: str
    submitted_at: float
    started_at: float | None
    ended_at: float | None
    sequence: int


def view_of(task: Task) -> TaskView:
    """Return what is shown of a task."""
    names = {number: name for name, number in PRIORITIES.items()}
    shown = {name: getattr(task, name) for name in TaskView.model_fields if name != "priority"}
    return TaskView(priority=names[task.priority], **shown)


class Service:
    """Store, dispatcher, and who waits for what. Lifetime: the server."""

    def __init__(
        self,
        settings: Config,
        device: str,
        evaluate: Evaluate,
        folder: Path,
        in_flight: int | Callable[[], int],
    ) -> None:
        self.settings = settings
        self.device = device
        """Its model."""
        self.started = time.time()
        self.store = Store(folder / "tasks.db")
        self._lock = threading.Lock()
        self._watched: dict[str, list[Callable[[], None]]] = {}
        self.dispatcher = Dispatcher(self.store, evaluate, in_flight=in_flight, told=self._told)

    def _told(self, key: str) -> None:
        with self._lock:
            waiting = self._watched.pop(key, [])
        for call in waiting:
            call()

    async def submit(self, client: Client, given: Submission) -> Task:
        """Accept work.

        Raises:
            HTTPException: the request asks for what no client may, or its name is taken.
        """
        request = self._admitted(given.request)
        key = digest_text(f"{request.digest()}\n{__version__}")
        deadline = None if given.deadline_s is None else time.time() + given.deadline_s
        row = Submitted(
            key=key,
            client=client.name,
            problem=request.problem.digest(),
            priority=PRIORITIES[given.priority],
            request=request.to_json().encode(),
            name=given.name,
            deadline=deadline,
        )
        try:
            task = await asyncio.wrap_future(self.store.submit(row))
        except Conflict as error:
            raise HTTPException(409, str(error)) from error
        except InfrastructureError as error:
            raise HTTPException(503, str(error), {"retry-after": str(RETRY_S)}) from error
        self.dispatcher.add(task)
        return task

    def _admitted(self, request: EvalRequest) -> EvalRequest:
        """Return a request as it is judged here: on our device, within our limits."""
        candidates = [request.candidate, *(b.candidate for b in request.baselines if b.candidate)]
        if any(item.allow_imports for item in candidates):
            raise HTTPException(422, "allow_imports: folders of the server are nobody's to mount")
        if request.seed is not None:
            raise HTTPException(422, "seed: it is drawn here, in secret")
        ours, asked = self.settings.eval.limits, request.limits
        least = {
            name: min(getattr(ours, name), getattr(asked, name)) for name in type(ours).model_fields
        }
        return request.model_copy(
            update={"device": self.settings.eval.device, "limits": ours.model_copy(update=least)}
        )

    async def ended(self, key: str, wait_s: float) -> Task | None:
        """Return a task once it has ended, or as it is when the time is up."""
        loop, done = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            loop.call_soon_threadsafe(done.set)

        until = time.monotonic() + wait_s
        while True:
            with self._lock:
                self._watched.setdefault(key, []).append(wake)
            try:
                # Looked at after it is watched: what ends in between is not missed.
                task = await asyncio.to_thread(self.store.task, key)
                left = until - time.monotonic()
                if task is None or task.state not in ("queued", "running") or left <= 0:
                    return task
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(done.wait(), left)
                done.clear()
            finally:
                self._unwatch(key, wake)

    def _unwatch(self, key: str, wake: Callable[[], None]) -> None:
        with self._lock:
            waiting = [call for call in self._watched.get(key, ()) if call is not wake]
            if waiting:
                self._watched[key] = waiting
            else:
                self._watched.pop(key, None)

    def close(self) -> None:
        """Begin nothing more, finish what is being judged, and close the store."""
        self.dispatcher.close()
        self.store.close()


def create_app(service: Service, tokens: Tokens | None, most_waiting: int = 10_000) -> FastAPI:
    """Return the application; `tokens` are asked for unless they are `None`."""

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        yield
        await asyncio.to_thread(service.close)

    app = FastAPI(title="tilewright", version=__version__, lifespan=life)
    app.state.service, app.state.tokens, app.state.most_waiting = service, tokens, most_waiting
    app.add_middleware(Bounded)
    app.add_exception_handler(InfrastructureError, unavailable)
    for path, call, methods, status in (
        ("/v1/tasks", submit, ["POST"], 202),
        ("/v1/tasks/batch", submit_many, ["POST"], 202),
        ("/v1/tasks", tasks, ["GET"], 200),
        ("/v1/tasks/{key}", task, ["GET"], 200),
        ("/v1/tasks/{key}/report", report, ["GET"], 200),
        ("/v1/tasks/{key}", cancel, ["DELETE"], 200),
        ("/v1/health", health, ["GET"], 200),
        ("/v1/queue", waiting, ["GET"], 200),
        ("/metrics", metrics, ["GET"], 200),
    ):
        app.add_api_route(path, call, methods=methods, status_code=status)
    return app


def unavailable(_: Request, error: Exception) -> Response:
    """Answer where the store cannot be used for now: ask again."""
    said = {"detail": str(error)}
    return JSONResponse(said, 503, {"retry-after": str(RETRY_S)})


def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


def _client(request: Request) -> Client:
    """Return who asks.

    Raises:
        HTTPException: a token is wanted, and there is none that we know.
    """
    tokens: Tokens | None = request.app.state.tokens
    if tokens is None:
        return LOCAL
    client = tokens.client_of(request.headers)
    if client is None:
        raise HTTPException(401, "a token is wanted", {"www-authenticate": "Bearer"})
    return client


Asker = Annotated[Client, Depends(_client)]
Ours = Annotated[Service, Depends(_service)]


def _needs(client: Client, scope: Literal["submit", "read", "admin"]) -> None:
    if not client.may(scope):
        raise HTTPException(403, f"{client.name} may not {scope}")


def _room(request: Request, service: Service, wanted: int) -> None:
    if service.dispatcher.state()["waiting"] + wanted > request.app.state.most_waiting:
        raise HTTPException(429, "too much is waiting", {"retry-after": str(RETRY_S)})


def admitted(request: Request, client: Client, service: Service, wanted: int) -> None:
    """Let a client submit.

    Raises:
        HTTPException: it may not, or too much is waiting.
    """
    _needs(client, "submit")
    _room(request, service, wanted)


async def submit(body: Submission, request: Request, client: Asker, service: Ours) -> TaskView:
    """Accept one piece of work. It is on the disk when this answers."""
    admitted(request, client, service, 1)
    return view_of(await service.submit(client, body))


async def submit_many(
    body: Annotated[list[Submission], Field(max_length=MOST_TOGETHER)],
    request: Request,
    client: Asker,
    service: Ours,
) -> list[TaskView]:
    """Accept several; one that is refused refuses all that come after it."""
    admitted(request, client, service, len(body))
    return [view_of(await service.submit(client, item)) for item in body]


async def task(
    key: str, client: Asker, service: Ours, wait_s: Annotated[float, Query(ge=0)] = 0.0
) -> TaskView:
    """Return a task, after at most `wait_s` seconds once it has ended. `key` may be your name."""
    found = await service.ended(_own(key, client, service), min(wait_s, MOST_WAIT_S))
    if found is None:
        raise HTTPException(404, "no such task of yours")
    return view_of(found)


def report(key: str, client: Asker, service: Ours) -> EvalReport:
    """Return the report of a task that is done."""
    found = service.store.result(_own(key, client, service))
    if not found:
        raise HTTPException(404, "there is no report, or not yet")
    try:
        return EvalReport.model_validate_json(found)
    except ValidationError as error:
        raise HTTPException(500, "the stored report is damaged") from error


async def cancel(key: str, client: Asker, service: Ours) -> TaskView:
    """Cancel a task that nobody else wants; what is being judged ends at its next step."""
    _needs(client, "submit")
    own = _own(key, client, service)
    before = service.store.task(own)
    if await asyncio.wrap_future(service.store.cancel(client.name, own)):
        service.dispatcher.forget(own)
    found = service.store.task(own) or before
    if found is None:
        raise HTTPException(404, "no such task of yours")
    return view_of(found)


def tasks(
    client: Asker,
    service: Ours,
    state: Literal["queued", "running", "done", "failed", "cancelled"] | None = None,
    after: Annotated[int, Query(ge=0)] = 0,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> list[TaskView]:
    """Return your tasks in the order of acceptance, from after a sequence number on."""
    _needs(client, "read")
    whose = None if client.may("admin") else client.name
    return [view_of(found) for found in service.store.page(whose, state, after, limit)]


def _own(key: str, client: Client, service: Service) -> str:
    """Return the key of a task of a client's, given the key or the client's name for it."""
    _needs(client, "read")
    found = service.store.named(client.name, key) or key
    if not client.may("admin") and not service.store.owns(client.name, found):
        # Whether others have asked for it is nobody's business.
        raise HTTPException(404, "no such task of yours")
    return found


def health(service: Ours) -> dict[str, Any]:
    """Tell whether the server lives; nothing of its work."""
    return {
        "status": "ok",
        "version": __version__,
        "device": service.device,
        "up_s": time.time() - service.started,
    }


def waiting(client: Asker, service: Ours) -> dict[str, Any]:
    """Return how much waits and is being judged."""
    _needs(client, "read")
    found = service.dispatcher.state()
    if not client.may("admin"):
        found["clients"] = {client.name: found["clients"].get(client.name, 0)}
    return found


def metrics(client: Asker, service: Ours) -> Response:
    """Return figures as Prometheus reads them."""
    _needs(client, "read")
    state = service.dispatcher.state()
    lines = [
        "# TYPE tilewright_waiting gauge",
        f"tilewright_waiting {state['waiting']}",
        "# TYPE tilewright_running gauge",
        f"tilewright_running {state['running']}",
        "# TYPE tilewright_ended_total counter",
    ]
    ended = sorted(service.dispatcher.verdicts.items())
    lines += [f'tilewright_ended_total{{as="{name}"}} {count}' for name, count in ended]
    lines.append("# TYPE tilewright_tasks gauge")
    counts = sorted(service.store.counts().items())
    lines += [f'tilewright_tasks{{state="{name}"}} {count}' for name, count in counts]
    return Response("\n".join(lines) + "\n", media_type="text/plain; version=0.0.4")
