"""Dependencies of the endpoints: client, service, scopes and admission."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from fastapi import Depends, HTTPException, Request

from tilewright.serve.auth import AuthenticatedClient, Scope
from tilewright.serve.schemas import ErrorBody
from tilewright.serve.service import MAX_QUOTED, RETRY_S, DisconnectCheck, Service

REFUSALS: dict[int | str, dict[str, Any]] = {
    code: {"model": ErrorBody, "description": meaning}
    for code, meaning in {
        400: "the request is malformed",
        401: "the request needs a valid token",
        403: "the token lacks the scope",
        404: "the client has no such task or report",
        408: "the body did not arrive in time",
        409: "the client has given this name to another request",
        413: "the body or the batch is larger than the limit",
        422: "the request is invalid",
        429: "the rate limit or the queue limit is reached; `Retry-After` gives the delay",
        431: "the headers are too large",
        503: "the server drains or cannot write its store; `Retry-After` gives the delay",
    }.items()
}
"""Refusals that any endpoint may return."""


# Coroutines: FastAPI would run a function in a thread, for each request.
async def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


async def _client(request: Request) -> AuthenticatedClient:
    # `AccessMiddleware` has set it.
    client: AuthenticatedClient = request.state.client
    return client


CurrentClient = Annotated[AuthenticatedClient, Depends(_client)]
CurrentService = Annotated[Service, Depends(_service)]


async def _disconnect_check(
    request: Request, client: CurrentClient, service: CurrentService
) -> DisconnectCheck:
    """Return a check for a disconnect, which raises `HTTPException` once the token is invalid."""

    async def has_left() -> bool:
        if not service.is_known(client):
            raise HTTPException(401, "the token is no longer valid", {"www-authenticate": "Bearer"})
        return await request.is_disconnected()

    return has_left


HasLeft = Annotated[DisconnectCheck, Depends(_disconnect_check)]


def needs(client: AuthenticatedClient, *scopes: Scope) -> None:
    """Refuse a client that has none of these scopes."""
    if not any(client.may(scope) for scope in scopes):
        raise HTTPException(403, f"{client.name} has no scope {' or '.join(scopes)}")


def admitted(
    client: AuthenticatedClient, service: Service, wanted: int, known: Iterable[bool]
) -> None:
    """Refuse a client that may not submit `wanted` tasks now.

    `known` tells of each whether it adds no task. It is read if the queue has no room for all.
    """
    needs(client, "submit")
    limits = service.settings.serve
    each = limits.max_queue
    if service.tokens is not None:
        each = min(each, limits.max_queue_per_client)
    if wanted > each:
        # Not 429: a later attempt would not succeed either.
        raise HTTPException(
            413, f"{wanted} tasks at once, but the queue holds {each}; send at most {each} together"
        )
    later = {"retry-after": str(RETRY_S)}
    if service.draining:
        raise HTTPException(503, "the server drains; send the request again later", later)
    state = service.dispatcher.state()
    capacity = limits.max_queue - state["waiting"]
    own = each - state["clients"].get(client.name, 0)
    if wanted > min(capacity, own):
        wanted -= sum(known)
    if wanted > max(capacity, 0):
        raise HTTPException(429, "the queue is full", later)
    if wanted > max(own, 0):
        raise HTTPException(429, f"the queue of {client.name} is full", later)


def task_key(key: str, request: Request, client: CurrentClient, service: CurrentService) -> str:
    """Return the key of a client's task, by the key or the client's name for it."""
    # The scope `submit` also allows to read and cancel one's own tasks.
    needs(client, "submit", "read")
    found = service.store.named(client.name, key) or key
    if not client.may("admin") and not service.store.owns(client.name, found):
        # The same answer whether or not another client has such a task.
        raise HTTPException(404, f"you have no task {key[:MAX_QUOTED]!r}")
    request.state.task = found
    return found


TaskKey = Annotated[str, Depends(task_key)]
"""The key of a task that the client may see; 404 for any other task."""
