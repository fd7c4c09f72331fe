"""The supervisor's long-lived half: forkserver, cores, lease, and the judge that is kept warm."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tilewright.errors import InfrastructureError
from tilewright.evaluator.confinement import ALL_LAYERS, confinement
from tilewright.evaluator.devices import CPU, Device
from tilewright.evaluator.pool import pool_library
from tilewright.evaluator.processes import DEVICE_ROLES, ROLES, Child, Forkserver
from tilewright.records import Limits

__all__ = ["Cores", "Host", "plan_cores"]

SMALL_MACHINE_CORES = 4
JUDGE_MEMORY = 4
"""The judge holds reference, oracle and snapshots where a contestant holds one output."""
LEASE_POLL_S = 0.02
ARMED = 2
"""Contestants forked ahead: one for the next candidate, one for its baseline."""
SLOTS_OF_UIDS = 256
"""Each child of a host gets a uid of its own, so that limits per uid are not shared."""


@dataclass(frozen=True)
class Cores:
    """Who runs where. Timed sides share one set of cores; nothing of ours runs on it meanwhile."""

    sides: tuple[int, ...]
    judge: tuple[int, ...]

    @property
    def threads(self) -> int:
        """Return the number of threads that each timed side gets."""
        return len(self.sides)

    @property
    def separate(self) -> bool:
        """Tell whether the clock has a core of its own; without one no time is claimed."""
        return not set(self.sides) & set(self.judge)


def plan_cores(available: list[int]) -> Cores:
    """Split the cores: one for the sides on small machines, else half of them."""
    ordered = sorted(available)
    if len(ordered) == 1:
        return Cores((ordered[0],), (ordered[0],))
    count = 1 if len(ordered) <= SMALL_MACHINE_CORES else len(ordered) // 2
    return Cores(tuple(ordered[:count]), tuple(ordered[count:]))


def _locked(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class Host:
    """Everything that outlives one evaluation. Lifetime: the supervisor process."""

    def __init__(
        self,
        home: Path,
        device: Device = CPU,
        layers: tuple[str, ...] = (ALL_LAYERS,),
        available: list[int] | None = None,
    ) -> None:
        self.home = home
        self.device = device
        self.layers = layers
        # A second host of one supervisor finds its affinity narrowed by the first.
        self.cores = plan_cores(available or list(os.sched_getaffinity(0)))
        os.sched_setaffinity(0, self.cores.judge)
        self.forkserver = Forkserver(
            {**device.environment, "OMP_NUM_THREADS": str(self.cores.threads)},
            DEVICE_ROLES if device.is_gpu else ROLES,
        )
        self.suspect = False
        """Whether the last candidate may have left the device in a bad state."""
        self.bad_probes = 0
        """How often in a row the device failed to compute something known."""
        self._warm: dict[str, Child] = {}
        self._forks = 0
        self._armed: list[Child] = []
        self._armed_for: Limits | None = None

    def spawn(self, role: str, limits: Limits, extra_paths: tuple[str, ...] = ()) -> Child:
        """Return a confined child, armed before or forked now; `wait_ready` comes first."""
        if role == "contestant" and not extra_paths:
            child = self._take_armed(limits)
            if child is not None:
                return child
        return self._fork(role, limits, extra_paths)

    def prearm(self, limits: Limits) -> None:
        """Fork contestants ahead, so that the next evaluation finds them confined and waiting.

        Each is used once like any other. They hold no candidate and no descriptor but their own.
        """
        self._armed_for = limits
        self._armed = [child for child in self._armed if self._usable(child)]
        while len(self._armed) < ARMED:
            self._armed.append(self._fork("contestant", limits, ()))

    def _take_armed(self, limits: Limits) -> Child | None:
        if limits != self._armed_for:
            self._disarm()
        while self._armed:
            child = self._armed.pop(0)
            if self._usable(child):
                return child
        return None

    def _usable(self, child: Child) -> bool:
        if not child.alive():
            child.kill()
        return not child.closed

    def _disarm(self) -> None:
        for child in self._armed:
            child.kill()
        self._armed.clear()

    def _fork(self, role: str, limits: Limits, extra_paths: tuple[str, ...]) -> Child:
        cores = self.cores.sides if role == "contestant" else self.cores.judge
        self._forks += 1
        values = confinement(
            self._forks % SLOTS_OF_UIDS,
            limits,
            limits.memory_bytes * (JUDGE_MEMORY if role == "judge" else 1),
            cores=cores,
            threads=len(cores),
            device=self.device,
            skipped_pids=int(role == "judge" and self.device.is_gpu),
            extra_paths=(*self._own_paths(), *extra_paths),
            layers=self.layers,
        )
        return self.forkserver.fork(role, values, limits.output_bytes)

    def _own_paths(self) -> tuple[str, ...]:
        return (str(pool_library(self.home)),) if self.device.is_gpu else ()

    def take_warm(self, key: str) -> Child | None:
        """Return the idle judge of a problem, if one is kept and alive; end any other."""
        child = self._warm.pop(key, None)
        for other in self._warm.values():
            other.kill()
        self._warm.clear()
        if child is not None and not child.alive():
            child.kill()
            return None
        return child

    @property
    def occupied(self) -> bool:
        """Tell whether children of ours are on the device between evaluations."""
        return bool(self._warm or self._armed)

    def keep_warm(self, key: str, child: Child) -> None:
        """Keep an idle judge for the next candidate of the same problem."""
        self._warm[key] = child

    @contextmanager
    def lease(self, waiting: Callable[[str], None], watch: Callable[[], None]) -> Iterator[None]:
        """Hold the GPU, or this machine's timed cores; a second command waits and says so.

        Raises:
            InfrastructureError: the lock file cannot be made.
        """
        name = self.device.uuid or "cpu-" + "-".join(str(core) for core in self.cores.sides)
        folder = Path("/tmp") / f"tilewright-leases-{os.getuid()}"
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            file = open(folder / f"{name}.lock", "a", encoding="ascii")  # noqa: SIM115
        except OSError as error:
            raise InfrastructureError(
                f"cannot make the device lease in {folder}: {error}"
            ) from error
        with file:
            told = False
            while not _locked(file):
                if not told:
                    waiting(f"device {name} is in use by another tilewright; waiting for it")
                told = True
                watch()
                time.sleep(LEASE_POLL_S)
            yield

    def close(self) -> None:
        """End every child and the forkserver."""
        self._disarm()
        for child in self._warm.values():
            child.kill()
        self._warm.clear()
        self.forkserver.close()
