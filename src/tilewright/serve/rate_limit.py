"""Rate limit: one token bucket per client, filled at a constant rate."""

from __future__ import annotations

import threading
from collections import OrderedDict

MAX_NAMES = 10_000
"""Clients with a bucket; beyond that the one not seen for longest is dropped."""


class TokenBuckets:
    """Token buckets of `burst` tokens by name, filled with `rate` tokens per second.

    Lifetime: the server. Safe to use from several threads.
    """

    def __init__(self, rate: float, burst: int) -> None:
        self._rate, self._burst = rate, float(burst)
        self._lock = threading.Lock()
        self._filled: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, name: str, now: float) -> float:
        """Take a token at a time in seconds; return 0, or the seconds until there is one."""
        with self._lock:
            level, then = self._filled.pop(name, (self._burst, now))
            level = min(level + max(now - then, 0.0) * self._rate, self._burst)
            allowed = level >= 1.0
            self._filled[name] = (level - 1.0 if allowed else level, max(now, then))
            while len(self._filled) > MAX_NAMES:
                self._filled.popitem(last=False)
        return 0.0 if allowed else (1.0 - level) / self._rate
