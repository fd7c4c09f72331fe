"""The stages of a task on a server, told while its client waits for the end."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tilewright.executors.base import Progress, ignore_progress

TOLD = ("stage", "problem_check", "sample", "timing")
"""The events of a server that a client tells its caller."""


@contextmanager
def stages_told(options: dict[str, Any], path: str, progress: Progress) -> Iterator[None]:
    """Tell the events of a task meanwhile, from a thread of its own.

    `options` are those of the HTTP client, and `path` leads to the events. A stream that is refused
    or breaks costs the stages alone: the caller asks for the end of the task by itself.
    """
    if progress is ignore_progress:
        yield
        return
    over = threading.Event()
    follower = threading.Thread(target=_follow, args=(options, path, progress, over), daemon=True)
    follower.start()
    try:
        yield
    finally:
        over.set()


def _follow(options: dict[str, Any], path: str, progress: Progress, over: threading.Event) -> None:
    import httpx
    from httpx_sse import SSEError, connect_sse

    try:
        with httpx.Client(**options) as client, connect_sse(client, "GET", path) as source:
            for item in source.iter_sse():
                if over.is_set():
                    return
                if item.event in TOLD:
                    progress(item.event, json.loads(item.data))
    except (httpx.HTTPError, SSEError, ValueError):
        return
