"""Memory of a GPU that other programs hold, by the driver's list of processes and by /proc."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass

MAX_GENERATIONS = 64
"""Parents that are followed upwards; a chain of processes is never as long."""


@dataclass(frozen=True)
class Strangers:
    """Memory of a GPU that processes hold which descend from no supervisor of this user."""

    held_bytes: int
    """With the contexts of processes that have ended, and of processes that /proc does not show."""
    seen: tuple[str, ...]
    """Those that /proc shows, the largest first: their number and their program."""


def strangers(
    held: Mapping[int, int], used_bytes: int, supervisors: Collection[int]
) -> Strangers | None:
    """Return what others hold of the `used_bytes` of a GPU.

    `held` is the driver's list: bytes by the number of a process. `supervisors` are numbers of
    processes. `None` if no listed process descends from a supervisor: in a container, the
    driver's numbers may be those of the host.
    """
    ours = {pid for pid in held if _descends(pid, supervisors)}
    if not ours:
        return None
    others = sorted((pid for pid in held if pid not in ours), key=lambda pid: -held[pid])
    named = ((pid, _program(pid)) for pid in others)
    seen = tuple(f"process {pid}, {program}" for pid, program in named if program)
    return Strangers(max(used_bytes - sum(held[pid] for pid in ours), 0), seen)


def _descends(pid: int, ancestors: Collection[int]) -> bool:
    for _ in range(MAX_GENERATIONS):
        if pid in ancestors:
            return True
        parent = _parent(pid)
        if not parent:
            return False
        pid = parent
    return False


def _parent(pid: int) -> int:
    """Return the number of the parent of a process; 0 if there is none, or no such process."""
    with suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/stat", "rb") as file:
        # The name of the process, in brackets, may hold anything.
        return int(file.read().rpartition(b")")[2].split()[1])
    return 0


def _program(pid: int) -> str:
    """Return the name of a process's program; its arguments may be another user's secrets."""
    with suppress(OSError), open(f"/proc/{pid}/comm", "rb") as file:
        return file.read().decode(errors="replace").strip()
    return ""
