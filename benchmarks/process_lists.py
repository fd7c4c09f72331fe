"""The processes below one process, as /proc lists them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path


def _parent(pid: str) -> int:
    return int(Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()[1])


def children(pid: int) -> set[int]:
    """Return the processes that a process has started itself."""
    return {item for item in descendants(pid) - {pid} if _is_child(item, pid)}


def _is_child(pid: int, parent: int) -> bool:
    try:
        return _parent(str(pid)) == parent
    except OSError:
        return False


def descendants(pid: int) -> set[int]:
    """Return a process and all processes below it."""
    parents = {}
    for name in os.listdir("/proc"):
        with suppress(OSError):
            if name.isdecimal():
                parents[int(name)] = _parent(name)
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def alive(pids: Iterable[int]) -> set[int]:
    """Return those processes that still run; a zombie does not."""
    found = set()
    for pid in pids:
        with suppress(OSError):
            state = Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[0]
            if state not in "ZX":
                found.add(pid)
    return found


def identities(pids: Iterable[int]) -> set[tuple[int, int]]:
    """Return processes with the time of their start, since another one may get the same number."""
    found = set()
    for pid in pids:
        with suppress(OSError):
            text = Path("/proc", str(pid), "stat").read_text()
            found.add((pid, int(text.rpartition(")")[2].split()[19])))
    return found


def until(true: Callable[[], object], within_s: float = 20.0) -> bool:
    """Wait until something is true, and tell whether it became so."""
    limit = time.monotonic() + within_s
    while not true():
        if time.monotonic() > limit:
            return False
        time.sleep(0.02)
    return True
