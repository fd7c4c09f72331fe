"""The dashboard at `/`: a page without data, and the overview that it follows with a token.

The page is public, because it holds no data of any client. It asks for a token, keeps it for the
browser tab, and sends it with each request as any other client does.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from functools import cache

from fastapi import Request, Response
from fastapi.responses import HTMLResponse

from tilewright._version import __version__
from tilewright.reports.html_report import drawn
from tilewright.serve import schemas
from tilewright.serve.activity import Activity
from tilewright.serve.auth import AuthenticatedClient
from tilewright.serve.dependencies import CurrentClient, CurrentService, needs
from tilewright.serve.service import Service
from tilewright.serve.sse import answered

RECENT = 100
"""Tasks of the overview, the newest first; `/v1/tasks` lists all."""
POLL_S = 1.0
"""Seconds between two looks for a change."""
QUIET_S = 5.0
"""Seconds after which the overview is sent without a change, for its times."""
FOLLOWED = "overview"
"""Name that listeners follow in place of a task, so that the limit of streams counts them."""
POLICY = (
    "default-src 'none'; connect-src 'self'; style-src 'unsafe-inline'; script-src "
    "'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


async def page() -> Response:
    """Return the page of the dashboard, without any data."""
    headers = {"content-security-policy": POLICY, "cache-control": "no-store"}
    return HTMLResponse(_page(), headers=headers)


@cache
def _page() -> str:
    return drawn("dashboard", "tilewright", {}, ["page.css", "dashboard.css"], ["dashboard.js"])


async def overview(client: CurrentClient, service: CurrentService) -> schemas.Overview:
    """Return queue, workers, running and recent tasks, and the numbers of the last hour."""
    needs(client, "read")
    return await asyncio.to_thread(_overview, client, service)


async def follow(request: Request, client: CurrentClient, service: CurrentService) -> Response:
    """Follow the overview: one event `overview` whenever it changes, at most one per second."""
    needs(client, "read")
    return await answered(request, _stream(client, service))


async def _stream(client: AuthenticatedClient, service: Service) -> AsyncGenerator[str]:
    sent, quiet_s = -1, QUIET_S
    with service.feed.listening(client.name, FOLLOWED):
        while service.is_known(client):
            if service.activity.version != sent or quiet_s >= QUIET_S:
                sent, quiet_s = service.activity.version, 0.0
                found = await asyncio.to_thread(_overview, client, service)
                yield f"event: overview\ndata: {found.model_dump_json()}\n\n"
            if service.draining:
                # An open page must not delay the end of the server.
                return
            await asyncio.sleep(POLL_S)
            quiet_s += POLL_S


def _overview(client: AuthenticatedClient, service: Service) -> schemas.Overview:
    activity, store = service.activity, service.store
    every = client.may("admin")
    queue = service.dispatcher.state()
    if not every:
        queue["clients"] = {client.name: queue["clients"].get(client.name, 0)}

    def may_see(key: str) -> bool:
        return every or store.owns(client.name, key)

    waits = activity.waits()
    recent = store.latest(None if every else client.name, RECENT)
    return schemas.Overview(
        version=__version__,
        device=service.device,
        uptime_s=service.uptime_s,
        queue=schemas.Queue(**queue),
        tasks=store.counts(),
        workers=service.workers(),
        running=[
            schemas.RunningTask(**vars(item), **_problem(activity, item.key))
            for item in activity.running()
            if may_see(item.key)
        ],
        minutes=[schemas.MinuteView(**vars(item)) for item in activity.minutes()],
        waited_tasks=waits.tasks if waits else 0,
        wait_median_s=waits and waits.median_s,
        wait_p95_s=waits and waits.p95_s,
        failures=[
            schemas.InternalError(**vars(item)) for item in activity.failures() if may_see(item.key)
        ],
        recent=[
            schemas.RecentTask(
                **schemas.view_of(item).model_dump(),
                **vars(activity.speedup(item.key)),
                **_problem(activity, item.key),
            )
            for item in recent
        ],
    )


def _problem(activity: Activity, key: str) -> dict[str, str]:
    problem, title = activity.problem(key)
    return {"problem": problem, "title": title}
