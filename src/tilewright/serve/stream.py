"""A task's story as server-sent events: its state first, then what happens, then its end."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any

from fastapi import HTTPException, Request, Response
from fastapi.responses import StreamingResponse

from tilewright.serve.access import Client, Tokens
from tilewright.serve.asking import Asker, Ours, is_known, own_key
from tilewright.serve.events import TooMany
from tilewright.serve.service import OPEN, RETRY_S, Service
from tilewright.serve.views import view_of

__all__ = ["events"]

LOOK_S = 2.0
"""How often a stream is looked at: whether its client's token still counts."""
STILL = 7
"""How many times nothing is said before a comment says that the server is still there."""


async def events(key: str, request: Request, client: Asker, service: Ours) -> Response:
    """Follow a task: `state`, then `running`, `stage`, `judged` ... as they come, and `ended`.

    The data of `state` and `ended` is the task; each event has an id, and whoever sends the last
    one back as `Last-Event-ID` goes on after it. `missed` says that some were forgotten meanwhile.
    A stream that ends without `ended` is to be asked for again.
    """
    own = await asyncio.to_thread(own_key, key, request, client, service)
    if await asyncio.to_thread(service.store.task, own) is None:
        raise HTTPException(404, "no such task of yours")
    after = service.feed.place_of(request.headers.get("last-event-id"))
    tokens: Tokens | None = request.app.state.tokens
    told = _told(service, client, own, after, lambda: is_known(tokens, client))
    try:
        first = await anext(told, "")
    except TooMany as error:
        raise HTTPException(429, str(error), {"retry-after": str(RETRY_S)}) from error
    request.state.streams = True

    async def whole() -> AsyncIterator[str]:
        async with contextlib.aclosing(told):
            yield first
            async for text in told:
                if text:
                    yield text

    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return StreamingResponse(whole(), media_type="text/event-stream", headers=headers)


async def _told(
    service: Service, client: Client, key: str, after: int, known: Callable[[], bool]
) -> AsyncGenerator[str]:
    loop, more = asyncio.get_running_loop(), asyncio.Event()

    def wake() -> None:
        loop.call_soon_threadsafe(more.set)

    feed = service.feed
    with feed.listening(client.name, key, wake):
        opening, pauses = True, 0
        while known():
            more.clear()
            # The events before the state: when it has ended, all of them were seen.
            task = await asyncio.to_thread(service.store.task, key)
            found, missed = feed.since(key, after)
            if opening and task is not None:
                yield _line("state", view_of(task).model_dump(), f"{feed.epoch}.{after}")
                opening = False
            if missed:
                yield _line("missed", {}, f"{feed.epoch}.{after}")
            for item in found:
                after = item.number
                yield _line(item.kind, item.fields, f"{feed.epoch}.{after}")
            if task is None:
                return
            if task.state not in OPEN:
                yield _line("ended", view_of(task).model_dump(), f"{feed.epoch}.{after}")
                return
            if not service.goes_on(task):
                return
            try:
                await asyncio.wait_for(more.wait(), LOOK_S)
            except TimeoutError:
                pauses += 1
                yield ": still here\n\n" if pauses % STILL == 0 else ""


def _line(kind: str, fields: dict[str, Any], place: str) -> str:
    return f"id: {place}\nevent: {kind}\ndata: {json.dumps(fields, default=str)}\n\n"
