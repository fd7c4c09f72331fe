"""Access control: request id, authentication before the body is read, rate limit and log."""

from __future__ import annotations

import math
import re
import secrets
import time
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tilewright.serve.api_docs import FILES
from tilewright.serve.auth import LOCAL, NOBODY, AuthenticatedClient, is_loopback
from tilewright.serve.request_limits import TokenBuckets, closing_refusal, discard
from tilewright.serve.service import Service

PUBLIC = {"/", "/v1/health", "/health", "/openapi.json", "/docs"}
"""Paths that need no token. They show no data of any client."""
REQUEST_ID = re.compile(r"[\w.\-]{1,64}", re.ASCII)
METHODS = {"GET", "POST", "DELETE", "PUT", "PATCH", "HEAD", "OPTIONS"}
MAX_HEADERS, MAX_HEADER_BYTES = 100, 32 << 10


class AccessMiddleware:
    """Passes an admitted request on and answers a refused one. Lifetime: the application."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        limits = service.settings.serve
        self._app = app
        self._service = service
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
        state["client"] = NOBODY if isinstance(client, JSONResponse) else client
        try:
            if isinstance(client, JSONResponse):
                await discard(receive)
                await client(scope, receive, sent)
            else:
                await self._app(scope, receive, sent)
        finally:
            self._note(scope, number, status, time.monotonic() - start)

    def _client(self, scope: Scope, headers: Headers) -> AuthenticatedClient | JSONResponse:
        size = sum(len(name) + len(value) for name, value in headers.raw)
        if len(headers.raw) > MAX_HEADERS or size > MAX_HEADER_BYTES:
            return closing_refusal(431, "the headers are too large")
        if self._service.tokens is None:
            return _foreign_page(headers) or LOCAL
        client = self._service.tokens.client_of(headers)
        address = (scope.get("client") or ("unknown", 0))[0]
        name = f"address {address}" if client is None else client.name
        wait_s = self._buckets.take(name, time.monotonic())
        if wait_s:
            later = str(math.ceil(wait_s))
            return closing_refusal(429, "too many requests", **{"retry-after": later})
        if client is not None:
            return client
        if scope["path"] in PUBLIC or scope["path"].startswith(f"{FILES}/"):
            return NOBODY
        bearer = {"www-authenticate": "Bearer"}
        return closing_refusal(401, "the request needs a valid token", **bearer)

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


def _foreign_page(headers: Headers) -> JSONResponse | None:
    """Refuse requests that a foreign page sends through a browser on this machine."""
    # A request has its page as `Origin`. A page may also give the loopback address a name of its
    # own (DNS rebinding), which is then the `Host`.
    origin, host = headers.get("origin"), headers.get("host")
    if origin is not None and not is_loopback(_host_of(origin)):
        return closing_refusal(403, "pages of other origins may not send requests")
    if host is not None and not is_loopback(_host_of(f"//{host}")):
        return closing_refusal(
            403,
            "without tokens this server only accepts requests for localhost; to allow other "
            "hosts, start it with --host and create a token",
        )
    return None


def _host_of(text: str) -> str:
    try:
        return urlsplit(text).hostname or ""
    except ValueError:
        return ""
