"""Limits of request bodies: size, declared or not, and time to arrive."""

from __future__ import annotations

import asyncio
import contextlib
import json

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["BodyLimitMiddleware", "answer", "discard"]

DISCARD_S, MAX_DISCARDED_BYTES = 2.0, 16 << 20


class BodyLimitMiddleware:
    """Reads each body completely before the endpoint runs. Lifetime: the application."""

    def __init__(self, app: ASGIApp, most_bytes: int, body_timeout_s: float) -> None:
        self._app = app
        self._most_bytes = most_bytes
        self._body_s = body_timeout_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on with its whole body, or answer for it."""
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
            await answer(send, 408, "the body took too long", close=True)
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
    """Read on for a while without keeping anything.

    Most clients look for an answer only when they have sent everything, and a connection that is
    closed before takes the answer with it.
    """
    size = 0
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(DISCARD_S):
            while size < MAX_DISCARDED_BYTES:
                message = await receive()
                size += len(message.get("body", b""))
                if message["type"] == "http.disconnect" or not message.get("more_body"):
                    break


async def answer(send: Send, status: int, said: str, *, close: bool = False, **more: str) -> None:
    """Answer a request that goes no further; names of `more` are headers, with `_` for `-`."""
    headers = [(b"content-type", b"application/json")]
    headers += [(name.replace("_", "-").encode(), text.encode()) for name, text in more.items()]
    body = json.dumps({"detail": said}).encode()
    headers.append((b"content-length", str(len(body)).encode()))
    if close:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
