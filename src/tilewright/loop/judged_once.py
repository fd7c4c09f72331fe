"""Equal code is judged once: a second request in flight waits for the result of the first."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future

from tilewright.records.events import Turn

Key = tuple[str, int, str]
"""Problem, trajectory, digest of the code."""


class JudgedOnce:
    """Shares evaluations of equal code. Lifetime: one run. Called from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shared: dict[Key, Future[Turn]] = {}

    def judge(self, key: Key, evaluate: Callable[[], Turn]) -> Turn:
        """Return the turn of the first request with this key, which `evaluate` makes.

        An unjudged turn is shared with nobody who comes later: another evaluation may help.

        Raises:
            Exception: an error of the evaluation, for each request that waited for it.
        """
        with self._lock:
            running = self._shared.get(key)
            mine = running is None
            future = self._shared.setdefault(key, Future())
        if not mine:
            return future.result()
        try:
            turn = evaluate()
        except BaseException as error:
            self._forget(key)
            future.set_exception(error)
            raise
        if turn.judgements and turn.judgements[0].verdict == "unjudged":
            self._forget(key)
        future.set_result(turn)
        return turn

    def _forget(self, key: Key) -> None:
        with self._lock:
            del self._shared[key]
