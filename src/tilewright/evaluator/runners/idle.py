"""What idles between the candidates of one problem: its judge and, on a GPU, its baselines."""

from __future__ import annotations

from dataclasses import dataclass, field

from tilewright.evaluator.processes.forkserver_client import Child
from tilewright.evaluator.runners.cpu_runner import Runner

__all__ = ["MAX_CACHED_RUNNERS", "IdleJudge", "RunnerCache"]

MAX_CACHED_RUNNERS = 2
"""How many processes of one baseline are kept: one a pair of processes of a short call."""


class RunnerCache:
    """Baselines that are alive and in no use, by name. Lifetime: that of their judge."""

    def __init__(self) -> None:
        self._ready: dict[str, list[Runner]] = {}
        self._served: dict[str, list[Runner]] = {}
        self._dead: list[Runner] = []

    def add(self, name: str, runner: Runner) -> None:
        """Set a side aside that has served in the evaluation under way."""
        self._served.setdefault(name, []).append(runner)

    def take(self, name: str) -> Runner | None:
        """Return a living side, or `None` where a fresh one is due.

        One that has not served yet, or else, once there are enough, who served longest ago.
        """
        served = self._served.get(name, [])
        for runners in (
            self._ready.get(name, []),
            served if len(served) >= MAX_CACHED_RUNNERS else [],
        ):
            while runners:
                runner = runners.pop(0)
                if runner.child.alive():
                    return runner
                self._dead.append(runner)
        return None

    def rest(self) -> list[Runner]:
        """Begin anew with as many as are of use; return the others, who are to end."""
        surplus, self._dead = self._dead, []
        for name in {*self._ready, *self._served}:
            runners = self._served.get(name, []) + self._ready.get(name, [])
            self._ready[name] = runners[:MAX_CACHED_RUNNERS]
            surplus += runners[MAX_CACHED_RUNNERS:]
        self._served.clear()
        return surplus

    def drain(self) -> list[Runner]:
        """Keep nobody; return all."""
        surplus = self.rest()
        for runners in self._ready.values():
            surplus += runners
        self._ready.clear()
        return surplus

    def close(self) -> None:
        """End all of them."""
        runners = self.drain()
        for runner in runners:
            runner.child.kill_async()
        for runner in runners:
            runner.close()


@dataclass
class IdleJudge:
    """An idle judge with what is parked beside it."""

    judge: Child
    cached: RunnerCache = field(default_factory=RunnerCache)

    def kill(self) -> None:
        """End the judge; what has mapped its memory ends first."""
        self.cached.close()
        self.judge.kill()
