"""Retries with a delay that doubles: one policy for the executors, the server, models and rewards.

`Backoff` decides and never sleeps, so synchronous and asynchronous callers share it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

Answer = TypeVar("Answer")


@dataclass
class Backoff:
    """Delays between the attempts of one call. Lifetime: the call."""

    delay_s: float
    """Seconds after the next failed attempt; each later delay is twice as long."""
    attempts: float = math.inf
    """Attempts in total."""
    max_delay_s: float = math.inf
    failed: int = 0
    """Attempts that have failed."""

    def next_delay(self, at_least_s: float = 0.0) -> float | None:
        """Return the seconds to wait after a failed attempt, or `None` after the last attempt.

        `at_least_s` is a delay that a server asks for; later delays double from there.
        """
        self.failed += 1
        if self.failed >= self.attempts:
            return None
        delay_s = max(self.delay_s, at_least_s)
        self.delay_s = 2 * delay_s
        return min(delay_s, self.max_delay_s)


def server_delay(response: object) -> float:
    """Return the seconds in a response's `Retry-After`; 0 for a date, which RFC 9110 allows."""
    headers = getattr(response, "headers", None) or {}
    try:
        return max(float(headers.get("retry-after", 0.0)), 0.0)
    except (TypeError, ValueError):
        return 0.0


def retry(
    call: Callable[[], Answer],
    backoff: Backoff,
    retry_after: Callable[[Exception], float | None],
    sleep: Callable[[float], object],
) -> Answer:
    """Return what a call returns, after as many attempts as it needs and `backoff` allows.

    `retry_after` gives the least delay after an error in seconds; `None`: the error is final.
    A true result of `sleep` stops the retries, as that of `threading.Event.wait` does.
    """
    while True:
        try:
            return call()
        except Exception as error:
            at_least_s = retry_after(error)
            delay_s = None if at_least_s is None else backoff.next_delay(at_least_s)
            if delay_s is None or sleep(delay_s):
                raise
