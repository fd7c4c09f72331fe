"""The lock on a file by which processes of one machine take turns.

The operating system releases the lock when the file is closed or its process ends.
"""

from __future__ import annotations

import fcntl
import threading
from collections.abc import Callable
from typing import IO, Any


def try_lock(file: IO[Any]) -> bool:
    """Lock an open file and return true, or return false if another process has locked it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def try_share(file: IO[Any]) -> bool:
    """Lock an open file together with others that share it; false if one has it for itself."""
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def unlock(file: IO[Any]) -> None:
    """Give the lock on an open file back."""
    fcntl.flock(file, fcntl.LOCK_UN)


def lock(file: IO[Any]) -> None:
    """Lock an open file; wait as long as another process has locked it."""
    fcntl.flock(file, fcntl.LOCK_EX)


def lock_when_free(
    file: IO[Any], stop: threading.Event, poll_s: float, on_wait: Callable[[], None] | None = None
) -> bool:
    """Lock an open file at the first free moment; return false if `stop` is set before that.

    `on_wait` is called once if the lock is not free at the first attempt.
    """
    while not stop.is_set():
        if try_lock(file):
            return True
        if on_wait is not None:
            on_wait()
            on_wait = None
        stop.wait(poll_s)
    return False
