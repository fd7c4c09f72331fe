"""Limits of requests: the rate of each client, and the size and time of a body."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import OrderedDict

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_NAMES = 10_000
"""Clients with a bucket; beyond that the one not seen for longest is dropped."""
DISCARD_S, MAX_DISCARDED_BYTES = 2.0, 16 << 20
"""Limits of `discard`: seconds, and bytes."""


class TokenBuckets:
    """Token buckets of `burst` tokens by name, filled with `rate` tokens per second.

    Lifetime: the server. Safe to use from several threads.
    """

    def __init__(self, rate: float, burst: int) -> None:
        self._rate, self._burst = rate, float(burst)
        self._lock = threading.Lock()
        self._filled: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, name: str, now: float) -> float:
        """Take a token at a time in seconds; return 0, or the seconds until there is one."""
        with self._lock:
            level, then = self._filled.pop(name, (self._burst, now))
            level = min(level + max(now - then, 0.0) * self._rate, self._burst)
            allowed = level >= 1.0
            self._filled[name] = (level - 1.0 if allowed else level, max(now, then))
            while len(self._filled) > MAX_NAMES:
                self._filled.popitem(last=False)
        return 0.0 if allowed else (1.0 - level) / self._rate


class BodyLimitMiddleware:
    """Reads each body completely before the endpoint runs. Lifetime: the application."""

    def __init__(self, app: ASGIApp, max_bytes: int, body_timeout_s: float) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._body_timeout_s = body_timeout_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on with its whole body, or answer it with a refusal."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            async with asyncio.timeout(self._body_timeout_s):
                body = await self._body(Request(scope, receive))
        except ClientDisconnect:
            return
        except TimeoutError:
            refused = closing_refusal(408, "the body did not arrive in time")
            await refused(scope, receive, send)
            return
        except HTTPException as error:
            await discard(receive)
            await closing_refusal(error.status_code, error.detail)(scope, receive, send)
            return
        messages = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def whole() -> Message:
            return next(messages, None) or await receive()

        await self._app(scope, whole, send)

    async def _body(self, request: Request) -> bytes:
        too_large = HTTPException(413, f"the body is larger than {self._max_bytes} bytes")
        declared = request.headers.get("content-length", "0")
        if not declared.isdigit() or int(declared[:20]) > self._max_bytes:
            raise too_large
        body = bytearray()
        async for part in request.stream():
            body += part
            if len(body) > self._max_bytes:
                raise too_large
        return bytes(body)


async def discard(receive: Receive) -> None:
    """Read and drop the rest of a body, within limits.

    Most clients read an answer only after they have sent everything.
    """
    size = 0
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(DISCARD_S):
            while size < MAX_DISCARDED_BYTES:
                message = await receive()
                size += len(message.get("body", b""))
                if message["type"] == "http.disconnect" or not message.get("more_body"):
                    break


def closing_refusal(status: int, detail: str, **headers: str) -> JSONResponse:
    """Return a refusal after which the server closes the connection."""
    return JSONResponse({"detail": detail}, status, {**headers, "connection": "close"})
