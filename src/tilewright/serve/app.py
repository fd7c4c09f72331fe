"""The HTTP API: submit, wait, look, follow, cancel. OpenAPI at `/openapi.json`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import FastAPI, HTTPException, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import Field
from pydantic_core import PydanticSerializationError
from starlette.types import Receive, Scope, Send

from tilewright._version import __version__
from tilewright.errors import InfrastructureError, RecordError, suggestion
from tilewright.records import EvalReport
from tilewright.records.field_faults import with_path
from tilewright.serve import dashboard, evaluations, schemas
from tilewright.serve.api_docs import add_docs
from tilewright.serve.dependencies import (
    REFUSALS,
    CurrentClient,
    CurrentService,
    HasLeft,
    TaskKey,
    admitted,
    needs,
    task_key,
)
from tilewright.serve.kernelgym import add_kernelgym
from tilewright.serve.middleware import AccessMiddleware
from tilewright.serve.request_limits import BodyLimitMiddleware
from tilewright.serve.service import RETRY_S, Service
from tilewright.serve.sse import events

MAX_WAIT_S = 60.0
MAX_BATCH_TASKS = 200
MAX_ERRORS = 20
MAX_SQLITE_INTEGER = 2**63 - 1
JSON = "application/json"
TEXT: dict[str, Any] = {"type": "string"}
SHAPES: dict[str, dict[str, Any]] = {
    "text/plain": TEXT,
    # The fields of each event; the data is JSON.
    "text/event-stream": {
        "type": "object",
        "properties": {"id": TEXT, "event": TEXT, "data": TEXT},
        "required": ["id", "event", "data"],
    },
}


TEXTS = "POST /v1/evaluations takes `code` and `problem`"
CODE = "code: expected text, or an object that has the text of each file by its name"
FIELDS = {*schemas.Submission.model_fields, *evaluations.TextSubmission.model_fields}
"""Fields of submissions, for a message about a misspelt one."""


class _App(FastAPI):
    """The application, whose description includes authentication. Lifetime: the server."""

    def openapi(self) -> dict[str, Any]:
        """Return the description; tokens are optional in it, as on the loopback address."""
        document = super().openapi()
        document["security"] = [{}, {"bearer": []}, {"basic": []}]
        document["components"]["securitySchemes"] = {
            kind: {"type": "http", "scheme": kind, "description": meaning}
            for kind, meaning in (
                ("bearer", "A token of `tilewright serve token create`."),
                ("basic", "The same token as the password, with any name."),
            )
        }
        return document


def create_app(service: Service) -> FastAPI:
    """Return the application over a service."""

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        pruning = asyncio.create_task(service.keep_pruning())
        yield
        pruning.cancel()
        await asyncio.to_thread(service.close)

    limits = service.settings.serve
    app = describe(life)
    app.state.service = service
    app.add_middleware(
        BodyLimitMiddleware, max_bytes=limits.body_bytes, body_timeout_s=limits.body_timeout_s
    )
    # The middleware that is added last runs first.
    app.add_middleware(AccessMiddleware, service=service)
    return app


def describe(life: Any = None) -> FastAPI:  # noqa: ANN401 - Starlette's own, or none
    """Return the endpoints, KernelGYM's too, without a service."""
    app = _App(
        title="tilewright", version=__version__, lifespan=life, docs_url=None, redoc_url=None
    )
    # A redirection would contain the host name that the client sent.
    app.router.redirect_slashes = False
    app.router.default = _nothing_there
    app.add_exception_handler(RequestValidationError, _invalid_request)
    app.add_exception_handler(405, _wrong_method)
    app.add_exception_handler(InfrastructureError, _store_unavailable)
    app.add_exception_handler(UnicodeEncodeError, _invalid_text)
    app.add_exception_handler(PydanticSerializationError, _invalid_text)
    for path, call, method, status, kind in (
        ("/v1/evaluations", evaluations.evaluate, "POST", 202, JSON),
        ("/v1/tasks", submit, "POST", 202, JSON),
        ("/v1/tasks/batch", submit_many, "POST", 202, JSON),
        ("/v1/tasks", tasks, "GET", 200, JSON),
        ("/v1/tasks/{key}", task, "GET", 200, JSON),
        ("/v1/tasks/{key}/report", report, "GET", 200, JSON),
        ("/v1/tasks/{key}/events", events, "GET", 200, "text/event-stream"),
        ("/v1/tasks/{key}", cancel, "DELETE", 200, JSON),
        ("/v1/health", health, "GET", 200, JSON),
        ("/v1/queue", waiting, "GET", 200, JSON),
        ("/v1/workers", workers, "GET", 200, JSON),
        ("/v1/overview", dashboard.overview, "GET", 200, JSON),
        ("/v1/overview/events", dashboard.follow, "GET", 200, "text/event-stream"),
        ("/metrics", metrics, "GET", 200, "text/plain"),
    ):
        answers = dict(REFUSALS)
        if kind != JSON:
            answers[200] = {"content": {kind: {"schema": SHAPES[kind]}}}
        app.add_api_route(
            path,
            call,
            methods=[method],
            status_code=status,
            responses=answers,
            response_class=JSONResponse if kind == JSON else Response,
        )
    app.add_api_route("/", dashboard.page, include_in_schema=False)
    add_docs(app)
    add_kernelgym(app)
    return app


async def _invalid_request(_: Request, error: Exception) -> JSONResponse:
    """Return the errors of a request without its content, which may be large, or no JSON."""
    assert isinstance(error, RequestValidationError)
    rows = [
        {"loc": [str(part) for part in item["loc"]], "msg": _said(item), "type": item["type"]}
        for item in error.errors()[:MAX_ERRORS]
    ]
    # A field of several types has a fault for each of them.
    alone = {row["msg"]: row for row in rows}
    return JSONResponse({"detail": list(alone.values())}, 422)


def _said(fault: Mapping[str, Any]) -> str:
    """Return a fault of a request in words; `loc` begins with where the field stands."""
    if fault["type"] == "json_invalid":
        return f"the body is not JSON from character {fault['loc'][-1]} on"
    where = fault["loc"][1:]
    if where[:1] == ("code",) and fault["type"] in ("string_type", "dict_type"):
        return CODE
    path = ".".join(map(str, where))
    if not path:
        return "the body must be a JSON object, sent with content-type: application/json"
    hint = ""
    if fault["type"] == "extra_forbidden":
        elsewhere = path in evaluations.TextSubmission.model_fields
        hint = TEXTS if elsewhere else suggestion(path, FIELDS, 0.7) or "/docs lists all fields"
    return "; ".join(filter(None, (with_path(path, fault, quotes=False), hint)))


async def _wrong_method(request: Request, error: Exception) -> JSONResponse:
    """Answer a request whose method the path does not have."""
    headers = getattr(error, "headers", None) or {}
    has = headers.get("Allow", "another method")
    said = f"{request.url.path} has no {request.method}; it has {has}; /docs lists all"
    return JSONResponse({"detail": said}, 405, headers)


async def _nothing_there(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a request for a path that the server does not have."""
    answer = JSONResponse({"detail": "there is no such path; /docs lists all"}, 404)
    await answer(scope, receive, send)


async def _invalid_text(_: Request, __: Exception) -> JSONResponse:
    """Refuse half of a surrogate pair: JSON can express it, and UTF-8 cannot."""
    return JSONResponse({"detail": "a string of the request cannot be encoded as UTF-8"}, 422)


async def _store_unavailable(request: Request, error: Exception) -> JSONResponse:
    """Answer while the store cannot be used; the client does not learn its path."""
    request.app.state.service.request_log.write("internal_error", message=str(error)[:500])
    detail = "the server cannot use its store now and has accepted nothing; try again"
    return JSONResponse({"detail": detail}, 503, {"retry-after": str(RETRY_S)})


async def submit(
    body: schemas.Submission, request: Request, client: CurrentClient, service: CurrentService
) -> schemas.TaskView:
    """Accept one submission. The server has stored it before it answers."""
    admitted(client, service, 1, map(service.knows, [body]))
    found = await service.submit(client, body)
    request.state.task = found.key
    return schemas.view_of(found)


async def submit_many(
    body: Annotated[list[schemas.Submission], Field(max_length=MAX_BATCH_TASKS)],
    client: CurrentClient,
    service: CurrentService,
) -> list[schemas.TaskView]:
    """Accept several submissions. A refused one refuses all that follow it."""
    admitted(client, service, len(body), map(service.knows, body))
    return [schemas.view_of(await service.submit(client, item)) for item in body]


async def task(
    key: TaskKey,
    service: CurrentService,
    has_left: HasLeft,
    wait_s: Annotated[float, Query(ge=0)] = 0.0,
) -> schemas.TaskView:
    """Return a task once it has ended, or as it is after `wait_s` seconds.

    `key` is the key of the task, or your name for it.
    """
    return schemas.view_of(await service.ended(key, min(wait_s, MAX_WAIT_S), has_left))


def report(key: TaskKey, service: CurrentService) -> EvalReport:
    """Return the report of a task in the state `done`."""
    found = service.store.result(key)
    if not found:
        raise HTTPException(404, "the task has no report, or not yet")
    try:
        return EvalReport.from_json(found)
    except RecordError as error:
        raise HTTPException(500, "the stored report is damaged") from error


async def cancel(
    key: str, request: Request, client: CurrentClient, service: CurrentService
) -> schemas.TaskView:
    """Cancel a task, unless another client has submitted it too. A running evaluation ends."""
    # Before the task is looked up: without the scope the answer does not depend on the key.
    needs(client, "submit")
    own = await asyncio.to_thread(task_key, key, request, client, service)
    return schemas.view_of(await service.cancel(client, own))


def tasks(
    client: CurrentClient,
    service: CurrentService,
    state: schemas.State | None = None,
    after: Annotated[int, Query(ge=0, le=MAX_SQLITE_INTEGER)] = 0,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> list[schemas.TaskView]:
    """Return your tasks in the order of acceptance, after a sequence number."""
    needs(client, "read")
    whose = None if client.may("admin") else client.name
    return [schemas.view_of(found) for found in service.store.page(whose, state, after, limit)]


def health(service: CurrentService) -> schemas.HealthStatus:
    """Return the status of the server, without data of any client."""
    usable = "draining" if service.draining else "ok"
    return schemas.HealthStatus(
        status=usable if service.store.is_there() else "store_unavailable",
        version=__version__,
        device=service.device,
        uptime_s=service.uptime_s,
    )


def waiting(client: CurrentClient, service: CurrentService) -> schemas.Queue:
    """Return the number of queued and running tasks."""
    needs(client, "read")
    found = service.dispatcher.state()
    if not client.may("admin"):
        found["clients"] = {client.name: found["clients"].get(client.name, 0)}
    return schemas.Queue(**found)


def workers(client: CurrentClient, service: CurrentService) -> list[schemas.Worker]:
    """Return the workers, one for each task that can run at once."""
    needs(client, "read")
    return service.workers()


def metrics(client: CurrentClient, service: CurrentService) -> Response:
    """Return the metrics in the Prometheus text format."""
    needs(client, "read")
    return Response(service.metrics.text(), media_type="text/plain; version=0.0.4")
