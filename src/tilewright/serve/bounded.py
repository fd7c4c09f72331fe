"""What a body may be: refused where it is too large, also undeclared, or takes too long."""

from __future__ import annotations

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["Bounded"]

MOST_BYTES = 4 << 20
BODY_S = 30.0
"""How long a body may take to arrive."""


class Bounded:
    """Reads bodies whole before anybody else does. Lifetime: the application."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on with its whole body, or answer for it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = bytearray()
        try:
            async with asyncio.timeout(BODY_S):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return
                    body += message.get("body", b"")
                    if len(body) > MOST_BYTES:
                        await _refuse(send, 413, b"larger than %d bytes" % MOST_BYTES)
                        return
                    if not message.get("more_body"):
                        break
        except TimeoutError:
            await _refuse(send, 408, b"the body took too long")
            return
        given = False

        async def whole() -> Message:
            nonlocal given
            if not given:
                given = True
                return {"type": "http.request", "body": bytes(body), "more_body": False}
            return await receive()

        await self._app(scope, whole, send)


async def _refuse(send: Send, status: int, said: bytes) -> None:
    headers = [(b"content-type", b"text/plain"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": said})
