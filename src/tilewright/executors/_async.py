"""Calls that block, awaited without blocking an event loop."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import TypeVar

__all__ = ["in_thread"]

Answer = TypeVar("Answer")


async def in_thread(call: Callable[[], Answer]) -> Answer:
    """Await what a call returns or raises in a thread of its own.

    `asyncio.to_thread` shares a pool of cpu_count + 4 threads: with 2 cores it would run 30
    waiting calls 6 at a time. A cancelled await does not end the call.
    """
    loop = asyncio.get_running_loop()
    found: asyncio.Future[Answer] = loop.create_future()

    def settle(answer: Answer | None, error: BaseException | None) -> None:
        if found.done():
            return
        if error is not None:
            found.set_exception(error)
        else:
            found.set_result(answer)  # type: ignore[arg-type] # of a call that has returned

    def work() -> None:
        answer, failed = None, None
        try:
            answer = call()
        except BaseException as error:  # noqa: BLE001 - raised again in the event loop
            failed = error
        # The loop may be closed by now; then nothing awaits the answer.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, answer, failed)

    threading.Thread(target=work, daemon=True).start()
    return await found
