"""Waiting for calls that block, without blocking an event loop."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import TypeVar

__all__ = ["in_thread"]

Answer = TypeVar("Answer")


async def in_thread(call: Callable[[], Answer]) -> Answer:
    """Await what a call returns or raises; it has a thread of its own.

    `asyncio.to_thread` has as many places as cores and four, for the whole program: of thirty that
    wait for a server, six would reach it from two cores. The thread ends with the call, or with
    the process; who gives up waiting does not end the call.
    """
    loop = asyncio.get_running_loop()
    found: asyncio.Future[Answer] = loop.create_future()

    def tell(answer: Answer | None, error: BaseException | None) -> None:
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
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            failed = error
        # The loop may have been closed meanwhile, and then nobody waits.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(tell, answer, failed)

    threading.Thread(target=work, daemon=True).start()
    return await found
