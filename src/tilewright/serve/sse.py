"""The events of one task as server-sent events: its state, its progress, its end."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

from fastapi import HTTPException, Request, Response
from fastapi.responses import StreamingResponse

from tilewright.serve.auth import AuthenticatedClient
from tilewright.serve.dependencies import CurrentClient, CurrentService, TaskKey
from tilewright.serve.schemas import view_of
from tilewright.serve.service import RETRY_S, Service
from tilewright.serve.task_events import TooMany

POLL_INTERVAL_S = 2.0
"""Seconds between two checks that the client's token is still valid."""
KEEPALIVE_POLLS = 7
"""Polls without an event after which the server sends a keep-alive comment."""


async def events(
    key: TaskKey, request: Request, client: CurrentClient, service: CurrentService
) -> Response:
    """Follow a task: `state`, then `running`, `stage`, `judged` ... as they happen, and `ended`.

    The data of `state` and `ended` is the task. Each event has an id. A client that sends the last
    id back as `Last-Event-ID` goes on after that event. `events_dropped` reports that the server
    has discarded some events. If a stream ends without `ended`, open it again.
    """
    await asyncio.to_thread(service.task, key)
    after = service.feed.place_of(request.headers.get("last-event-id"))
    return await answered(request, _stream(service, client, key, after))


async def answered(request: Request, stream: AsyncGenerator[str]) -> Response:
    """Answer with a stream of events; 429 if the client has too many open ones."""
    try:
        first = await anext(stream, "")
    except TooMany as error:
        raise HTTPException(429, str(error), {"retry-after": str(RETRY_S)}) from error
    request.state.streams = True

    async def whole() -> AsyncIterator[str]:
        async with contextlib.aclosing(stream):
            yield first
            async for text in stream:
                if text:
                    yield text

    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return StreamingResponse(whole(), media_type="text/event-stream", headers=headers)


async def _stream(
    service: Service, client: AuthenticatedClient, key: str, after: int
) -> AsyncGenerator[str]:
    feed = service.feed

    def line(kind: str, fields: dict[str, Any]) -> str:
        data = json.dumps(fields, default=str)
        return f"id: {feed.epoch}.{after}\nevent: {kind}\ndata: {data}\n\n"

    with feed.listening(client.name, key) as news:
        opening, pauses = True, 0
        told: int | None = None
        while service.is_known(client):
            news.clear()
            # The state is read before the events, so an ended task has no later events.
            task = await asyncio.to_thread(service.store.task, key)
            found, dropped = feed.since(key, after)
            if opening and task is not None:
                yield line("state", view_of(task).model_dump())
                opening = False
            if dropped and told != after:
                # Once, also where no later event moves the place.
                told = after
                yield line("events_dropped", {})
            for item in found:
                after = item.number
                yield line(item.kind, item.fields)
            if task is not None and not task.is_open:
                yield line("ended", view_of(task).model_dump())
            if task is None or not service.goes_on(task):
                return
            try:
                await asyncio.wait_for(news.wait(), POLL_INTERVAL_S)
            except TimeoutError:
                pauses += 1
                yield ": still here\n\n" if pauses % KEEPALIVE_POLLS == 0 else ""
