"""Processes that idle between the candidates of one problem: its judge and, on a GPU, baselines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from tilewright.evaluator.processes.forkserver_client import Child

MAX_CACHED_RUNNERS = 2
"""Processes that are kept for each baseline: short calls are timed in two process replicates."""


class Closeable(Protocol):
    """A runner whose process may end."""

    child: Child

    def close(self) -> None:
        """End the process and wait until it is gone; release what it shared."""


R = TypeVar("R", bound=Closeable)


class RunnerCache(Generic[R]):
    """Living baselines that nothing uses now, by name. Lifetime: that of their judge."""

    def __init__(self) -> None:
        self._ready: dict[str, list[R]] = {}
        self._served: dict[str, list[R]] = {}
        self._dead: list[R] = []

    def release(self, name: str, runner: R) -> None:
        """Take a runner that has served in the present evaluation."""
        self._served.setdefault(name, []).append(runner)

    def acquire(self, name: str) -> R | None:
        """Return a living runner, or `None` if a fresh one has to be started.

        One that has not served yet comes first, else of enough the one that served longest ago.
        """
        ready, served = self._ready.get(name, []), self._served.get(name, [])
        for runners in (ready, served if len(served) >= MAX_CACHED_RUNNERS else []):
            while runners:
                runner = runners.pop(0)
                if runner.child.alive():
                    return runner
                self._dead.append(runner)
        return None

    def __len__(self) -> int:
        """Return how many baselines are kept."""
        kept = (*self._ready.values(), *self._served.values())
        return sum(map(len, kept))

    def trim(self) -> list[R]:
        """Prepare for the next evaluation; return the runners beyond those to keep."""
        surplus, self._dead = self._dead, []
        for name in {*self._ready, *self._served}:
            runners = self._served.get(name, []) + self._ready.get(name, [])
            self._ready[name] = runners[:MAX_CACHED_RUNNERS]
            surplus += runners[MAX_CACHED_RUNNERS:]
        self._served.clear()
        return surplus

    def clear(self) -> list[R]:
        """Keep no runner; return all of them."""
        surplus = self.trim()
        while self._ready:
            surplus += self._ready.popitem()[1]
        return surplus

    def close(self) -> None:
        """End all of them."""
        runners = self.clear()
        for runner in runners:
            runner.child.kill_async()
        for runner in runners:
            runner.close()


@dataclass(frozen=True)
class IdleJudge:
    """An idle judge with the cached baselines of its problem."""

    judge: Child
    cached: RunnerCache[Any]
    held_bytes: int = 0
    """Memory of a GPU that all of them hold."""

    def kill(self) -> None:
        """End the judge; the processes that have mapped its memory end first."""
        self.cached.close()
        self.judge.kill()
