"""Limits of request bodies: size, declared or not, and time to arrive."""

from __future__ import annotations

import asyncio
import contextlib
import json

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["BodyLimitMiddleware", "answer", "discard"]

DISCARD_S, MAX_DISCARDED_BYTES = 2.0, 16 << 20
"""Limits of `discard`: seconds, and bytes."""


class BodyLimitMiddleware:
    """Reads each body completely before the endpoint runs. Lifetime: the application."""

    def __init__(self, app: ASGIApp, most_bytes: int, body_timeout_s: float) -> None:
        self._app = app
        self._most_bytes = most_bytes
        self._body_s = body_timeout_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on with its whole body, or answer it with a refusal."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        large = f"the body is larger than {self._most_bytes} bytes"
        declared = Headers(scope=scope).get("content-length", "0")
        if not declared.isdigit() or int(declared[:20]) > self._most_bytes:
            await discard(receive)
            await answer(send, 413, large, close=True)
            return
        body = bytearray()
        try:
            async with asyncio.timeout(self._body_s):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return
                    body += message.get("body", b"")
                    if len(body) > self._most_bytes:
                        await discard(receive)
                        await answer(send, 413, large, close=True)
                        return
                    if not message.get("more_body"):
                        break
        except TimeoutError:
            await answer(send, 408, "the body did not arrive in time", close=True)
            return
        given = False

        async def whole() -> Message:
            nonlocal given
            if not given:
                given = True
                return {"type": "http.request", "body": bytes(body), "more_body": False}
            return await receive()

        await self._app(scope, whole, send)


async def discard(receive: Receive) -> None:
    """Read and drop the rest of a body, within limits.

    Most clients read an answer only after they have sent everything. If the server closes the
    connection before, they never see the answer.
    """
    size = 0
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(DISCARD_S):
            while size < MAX_DISCARDED_BYTES:
                message = await receive()
                size += len(message.get("body", b""))
                if message["type"] == "http.disconnect" or not message.get("more_body"):
                    break


async def answer(send: Send, status: int, detail: str, *, close: bool = False, **more: str) -> None:
    """Send a refusal; the names of `more` are headers, with `_` for `-`."""
    headers = [(b"content-type", b"application/json")]
    headers += [(name.replace("_", "-").encode(), text.encode()) for name, text in more.items()]
    body = json.dumps({"detail": detail}).encode()
    headers.append((b"content-length", str(len(body)).encode()))
    if close:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
