"""Access control for each HTTP request: request id, authentication, rate limit and log.

An unauthenticated request is answered before its body is read.
"""

from __future__ import annotations

import math
import re
import secrets
import time
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tilewright.serve.auth import LOCAL, NOBODY, Client, Tokens, is_loopback
from tilewright.serve.rate_limit import TokenBuckets
from tilewright.serve.request_limits import answer, discard
from tilewright.serve.service import Service

__all__ = ["AccessMiddleware"]

PUBLIC = {"/v1/health", "/health", "/openapi.json", "/docs"}
"""Paths that need no token. They show no data of any client."""
REQUEST_ID = re.compile(r"[\w.\-]{1,64}", re.ASCII)
METHODS = {"GET", "POST", "DELETE", "PUT", "PATCH", "HEAD", "OPTIONS"}
MAX_HEADERS, MAX_HEADER_BYTES = 100, 32 << 10


@dataclass(frozen=True)
class _Refusal:
    status: int
    detail: str
    headers: dict[str, str]


class AccessMiddleware:
    """Passes an admitted request on and answers a refused one. Lifetime: the application."""

    def __init__(self, app: ASGIApp, service: Service, tokens: Tokens | None) -> None:
        limits = service.settings.serve
        self._app = app
        self._service = service
        self._tokens = tokens
        self._buckets = TokenBuckets(limits.requests_per_s, limits.burst)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on with its client and id, or answer it with a refusal."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers, start, status = Headers(scope=scope), time.monotonic(), 0
        given = headers.get("x-request-id", "")
        number = given if REQUEST_ID.fullmatch(given) else secrets.token_hex(8)
        state = scope.setdefault("state", {})

        async def sent(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                mine = [(b"x-request-id", number.encode()), (b"x-content-type-options", b"nosniff")]
                message = {**message, "headers": [*message.get("headers", ()), *mine]}
            await send(message)

        client = self._client(scope, headers)
        state["client"] = client if isinstance(client, Client) else NOBODY
        try:
            if isinstance(client, _Refusal):
                await discard(receive)
                more = {name.replace("-", "_"): text for name, text in client.headers.items()}
                await answer(sent, client.status, client.detail, close=True, **more)
            else:
                await self._app(scope, receive, sent)
        finally:
            self._note(scope, number, status, time.monotonic() - start)

    def _client(self, scope: Scope, headers: Headers) -> Client | _Refusal:
        """Return the client that sent the request, or the reason for its refusal."""
        if len(headers.raw) > MAX_HEADERS or _size(headers) > MAX_HEADER_BYTES:
            return _Refusal(431, "the headers are too large", {})
        address = (scope.get("client") or ("unknown", 0))[0]
        if self._tokens is None:
            return _foreign_page(headers) or LOCAL
        client = self._tokens.client_of(headers)
        name = f"address {address}" if client is None else client.name
        wait_s = self._buckets.take(name, time.monotonic())
        if wait_s:
            later = {"retry-after": str(math.ceil(wait_s))}
            return _Refusal(429, "too many requests", later)
        if client is not None:
            return client
        if scope["path"] in PUBLIC:
            return NOBODY
        return _Refusal(401, "the request needs a valid token", {"www-authenticate": "Bearer"})

    def _note(self, scope: Scope, number: str, status: int, took_s: float) -> None:
        state = scope["state"]
        metrics = self._service.metrics
        method = scope["method"] if scope["method"] in METHODS else "other"
        metrics.requests.labels(method, str(status)).inc()
        if not state.get("streams"):
            metrics.answer_seconds.observe(took_s)
        self._service.request_log.write(
            "request",
            id=number,
            client=state["client"].name,
            address=(scope.get("client") or (None, 0))[0],
            method=method,
            path=scope["path"],
            # 0: the client left before the answer.
            status=status,
            ms=round(took_s * 1e3, 1),
            task=state.get("task"),
        )


def _foreign_page(headers: Headers) -> _Refusal | None:
    """Refuse requests that a foreign page sends through a browser on this machine.

    Without tokens every program that reaches the loopback address is a client, also a browser. A
    page's own request has the page as `Origin`. A page may also give the loopback address a name
    of its own (DNS rebinding); that name is then the `Host`.
    """
    origin = headers.get("origin")
    if origin is not None and not is_loopback(_host_of(origin)):
        return _Refusal(403, "pages of other origins may not send requests", {})
    host = headers.get("host")
    if host is not None and not is_loopback(_host_of(f"//{host}")):
        return _Refusal(
            403,
            "without tokens this server only accepts requests for localhost; to allow other "
            "hosts, start it with --host and create a token",
            {},
        )
    return None


def _size(headers: Headers) -> int:
    return sum(len(name) + len(value) for name, value in headers.raw)


def _host_of(text: str) -> str:
    """Return the host of an address, or an empty text."""
    try:
        return urlsplit(text).hostname or ""
    except ValueError:
        return ""
