"""Dependencies of the endpoints: client, service, scopes and admission."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

from fastapi import Depends, HTTPException, Request

from tilewright.serve.auth import Client, Tokens
from tilewright.serve.schemas import ErrorBody
from tilewright.serve.service import RETRY_S, DisconnectCheck, Service

__all__ = [
    "REFUSALS",
    "CurrentClient",
    "CurrentService",
    "Refusals",
    "admitted",
    "is_known",
    "left",
    "needs",
    "own_key",
]

Refusals = dict[int | str, dict[str, Any]]
REFUSALS: Refusals = {
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


async def _client(request: Request) -> Client:
    # `AccessMiddleware` has set it.
    client: Client = request.state.client
    return client


CurrentClient = Annotated[Client, Depends(_client)]
CurrentService = Annotated[Service, Depends(_service)]


def left(request: Request, client: Client) -> DisconnectCheck:
    """Return a function that tells whether a client has disconnected.

    The function raises `HTTPException` once the client's token is invalid.
    """
    tokens: Tokens | None = request.app.state.tokens

    async def gone() -> bool:
        if not is_known(tokens, client):
            raise HTTPException(401, "the token is no longer valid", {"www-authenticate": "Bearer"})
        return await request.is_disconnected()

    return gone


def is_known(tokens: Tokens | None, client: Client) -> bool:
    """Tell whether a client may go on: the server uses no tokens, or its token is valid."""
    return tokens is None or tokens.knows(client)


def needs(client: Client, *scopes: Literal["submit", "read", "admin"]) -> None:
    """Return if a client has one of these scopes.

    Raises:
        HTTPException: the client has none of them.
    """
    if not any(client.may(scope) for scope in scopes):
        raise HTTPException(403, f"{client.name} has no scope {' or '.join(scopes)}")


def admitted(
    request: Request,
    client: Client,
    service: Service,
    wanted: int,
    known: Callable[[], int] = lambda: 0,
) -> None:
    """Return if a client may submit so many tasks now.

    Args:
        request: the client's request.
        client: the client.
        service: the server's service.
        wanted: number of submissions.
        known: returns how many of them add no task; called if the queue has no room for all.

    Raises:
        HTTPException: the scope is missing, the batch exceeds the queue, the queue is full, or the
            server drains.
    """
    needs(client, "submit")
    most = each = int(request.app.state.max_queue)
    if request.app.state.tokens is not None:
        each = min(most, service.settings.serve.max_queue_per_client)
    if wanted > each:
        # Not 429: a later attempt would not succeed either.
        raise HTTPException(
            413, f"{wanted} tasks at once, but the queue holds {each}; send at most {each} together"
        )
    later = {"retry-after": str(RETRY_S)}
    if service.draining:
        raise HTTPException(503, "the server drains; send the request again later", later)
    state = service.dispatcher.state()
    capacity = most - state["waiting"]
    own = each - state["clients"].get(client.name, 0)
    if request.app.state.tokens is None:
        own = capacity
    if wanted > min(capacity, own):
        wanted -= known()
    if wanted > max(capacity, 0):
        raise HTTPException(429, "the queue is full", later)
    if wanted > max(own, 0):
        raise HTTPException(429, f"the queue of {client.name} is full", later)


def own_key(key: str, request: Request, client: Client, service: Service) -> str:
    """Return the key of a client's task, by the key or the client's name for it.

    Raises:
        HTTPException: the client has no such task, or neither scope.
    """
    # The scope `submit` also allows to read and cancel one's own tasks.
    needs(client, "submit", "read")
    found = service.store.named(client.name, key) or key
    if not client.may("admin") and not service.store.owns(client.name, found):
        # The same answer whether or not another client has such a task.
        raise HTTPException(404, "you have no such task")
    request.state.task = found
    return found
