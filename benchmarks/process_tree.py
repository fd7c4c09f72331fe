"""Find the processes of an evaluation in `/proc`, for bars that kill or count them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

SUPERVISOR = b"tilewright.evaluator.server"
"""Part of a supervisor's command line: its module."""
FORKSERVER = b"tilewright.runner.forkserver"
"""Part of the command line of a forkserver, and of each process that it forks."""


def descendants(pid: int) -> list[int]:
    """Return all descendants of a process."""
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            text = Path(f"/proc/{pid}/task/{thread}/children").read_text(encoding="ascii")
            for child in text.split():
                found += [int(child), *descendants(int(child))]
    except OSError:
        return found
    return found


def family(pid: int) -> set[int]:
    """Return a process and all its descendants."""
    return {pid, *descendants(pid)}


def alive(pids: Iterable[int]) -> set[int]:
    """Return those processes that still run."""
    return {pid for pid in pids if is_running(pid)}


def identities(pids: Iterable[int]) -> set[tuple[int, int]]:
    """Return running processes with their start, since another one may get the same number."""
    found = set()
    for pid in pids:
        with suppress(OSError):
            found.add((pid, int(_stat(pid)[19])))
    return found


def until(true: Callable[[], object], within_s: float = 20.0) -> bool:
    """Wait until something is true, and tell whether it became so."""
    limit = time.monotonic() + within_s
    while not true():
        if time.monotonic() > limit:
            return False
        time.sleep(0.02)
    return True


def command_of(pid: int) -> bytes:
    """Return the command line of a process; empty if it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def parent_of(pid: int) -> int:
    """Return the parent of a process.

    Raises:
        OSError: the process is gone.
    """
    return int(_stat(pid)[1])


def is_running(pid: int) -> bool:
    """Return whether a process exists and is no zombie."""
    try:
        return _stat(pid)[0] != "Z"
    except OSError:
        return False


def is_supervisor(pid: int) -> bool:
    """Return whether a process is a supervisor."""
    return SUPERVISOR in command_of(pid)


def is_forkserver(pid: int) -> bool:
    """Return whether a process is a forkserver; a process that it forked is none."""
    try:
        return FORKSERVER in command_of(pid) and is_supervisor(parent_of(pid))
    except OSError:
        return False


def _stat(pid: int) -> list[str]:
    """Return the fields after the name: the state, the parent, and so on."""
    return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
