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
    code: {"model": ErrorBody, "description": said}
    for code, said in {
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


# Both are coroutines: what is none would be sent to a thread and back, for each request.
async def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


async def _client(request: Request) -> Client:
    # The gate let it in, and wrote down who it is.
    client: Client = request.state.client
    return client


CurrentClient = Annotated[Client, Depends(_client)]
CurrentService = Annotated[Service, Depends(_service)]


def left(request: Request, client: Client) -> DisconnectCheck:
    """Return how to find out whether a client has gone.

    What is returned raises `HTTPException` where its token is worth nothing any more.
    """
    tokens: Tokens | None = request.app.state.tokens

    async def gone() -> bool:
        if not is_known(tokens, client):
            raise HTTPException(401, "a token is wanted", {"www-authenticate": "Bearer"})
        return await request.is_disconnected()

    return gone


def is_known(tokens: Tokens | None, client: Client) -> bool:
    """Tell whether a client may go on: there are no tokens, or its own still counts."""
    return tokens is None or tokens.knows(client)


def needs(client: Client, *scopes: Literal["submit", "read", "admin"]) -> None:
    """Let a client do what any of these scopes stands for.

    Raises:
        HTTPException: it may not.
    """
    if not any(client.may(scope) for scope in scopes):
        raise HTTPException(403, f"{client.name} may not {' or '.join(scopes)}")


def admitted(
    request: Request,
    client: Client,
    service: Service,
    wanted: int,
    known: Callable[[], int] = lambda: 0,
) -> None:
    """Let a client submit.

    Args:
        request: of the client.
        client: who asks.
        service: that is asked.
        wanted: how many pieces of work.
        known: how many of them need no room, asked where there is none for all.

    Raises:
        HTTPException: it may not, it asks for more than may ever wait, too much is waiting, or the
            server is about to end.
    """
    needs(client, "submit")
    most = each = int(request.app.state.max_queue)
    if request.app.state.tokens is not None:
        each = min(most, service.settings.serve.max_queue_per_client)
    if wanted > each:
        # It would be refused for ever: to ask again later, as 429 says, is of no use.
        raise HTTPException(
            413, f"{wanted} at once: {each} may wait here; send at most {each} together"
        )
    later = {"retry-after": str(RETRY_S)}
    if service.draining:
        raise HTTPException(503, "the server is about to end; ask again", later)
    state = service.dispatcher.state()
    capacity = most - state["waiting"]
    own = each - state["clients"].get(client.name, 0)
    if request.app.state.tokens is None:
        own = capacity
    if wanted > min(capacity, own):
        wanted -= known()
    if wanted > max(capacity, 0):
        raise HTTPException(429, "too much is waiting", later)
    if wanted > max(own, 0):
        raise HTTPException(429, f"too much of {client.name} is waiting", later)


def own_key(key: str, request: Request, client: Client, service: Service) -> str:
    """Return the key of a task of a client's, given the key or the client's name for it.

    Raises:
        HTTPException: it has no such task, or may neither submit nor read.
    """
    # Who submits may see what came of it, and want it no more.
    needs(client, "submit", "read")
    found = service.store.named(client.name, key) or key
    if not client.may("admin") and not service.store.owns(client.name, found):
        # Whether others have asked for it is nobody's business.
        raise HTTPException(404, "no such task of yours")
    request.state.task = found
    return found
