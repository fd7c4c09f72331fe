"""The supervisor's state between evaluations: forkserver, cores, lease, and idle judges."""

from __future__ import annotations

import itertools
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from weakref import WeakValueDictionary

from tilewright.config import environment
from tilewright.errors import InfrastructureError
from tilewright.evaluator.devices.device_memory import CONTEXT_BYTES
from tilewright.evaluator.devices.devices import CPU, Cores, Device, few_queues, plan_cores
from tilewright.evaluator.devices.nvml import Conditions, conditions
from tilewright.evaluator.devices.toolchain import pool_library
from tilewright.evaluator.processes import forkserver_client
from tilewright.evaluator.processes.device_lease import DeviceLease
from tilewright.evaluator.processes.forkserver_client import Child, Forkserver
from tilewright.evaluator.processes.idle import Closeable, IdleJudge
from tilewright.evaluator.processes.memory_ledger import MemoryLedger
from tilewright.evaluator.processes.prefork import PreforkPool
from tilewright.evaluator.processes.sandbox_policy import ALL_LAYERS, confinement
from tilewright.records import Limits
from tilewright.wire.frames import Fields
from tilewright.wire.names import ISOLATION_LAYERS, PRELOAD, IsolationLayer

JUDGE_MEMORY = 4
"""The judge's memory limit, as a multiple of a runner's: the judge holds reference, oracle and
snapshots where a runner holds one output."""
LEASE_POLL_S, LEASE_NOTICE_S = 0.002, 2.0
"""Seconds between two attempts to lease a taken device, and until the user gets a notice."""
CLOSE_S = 0.3
"""Seconds to wait for the end of killed runners on a CPU: four gigabytes are freed within them."""
PREFORKED = {"runner": 2}
"""Preforked children: one for the next candidate, one for its baseline."""
PREFORKED_ON_GPU = {"runner": 2, "judge": 1}
"""One runner for the candidate, one for the candidate in a second process replicate, and a judge
for the next problem."""
MAX_IDLE_JUDGES, MAX_IDLE_JUDGES_ON_GPU = 1, 8
"""How many judges at most are kept for further candidates of their problems."""
MAX_IDLE_SHARE, MAX_IDLE_BYTES = 0.25, 5 << 29
"""Share of a device's memory for all idle judges, and bytes for one with its baselines."""
SLOTS_OF_UIDS, UID_BLOCKS = 256, 16
"""Each living child of a host has a uid of its own, so that limits per uid are not shared."""


def lease_name(device: Device, cores: Cores) -> str:
    """Return what is leased for an evaluation: a GPU, or this machine's timed cores."""
    return device.uuid or "cpu-" + "-".join(str(core) for core in cores.runners)


@dataclass(frozen=True)
class ForkserverPlan:
    """The forkserver of a device, as a supervisor can start it before it knows the device."""

    environment: dict[str, str]
    roles: tuple[str, ...]
    cores: tuple[int, ...]
    """Those of the supervisor and the forkserver: nothing of theirs runs on timed cores."""


def forkserver_plan(device: Device, cores: Cores) -> ForkserverPlan:
    """Return the plan of the forkserver for a device."""
    made = {
        **device.environment,
        **environment((PRELOAD,)),
        "OMP_NUM_THREADS": str(cores.threads),
    }
    roles = forkserver_client.GPU_ROLES if device.is_gpu else forkserver_client.CPU_ROLES
    return ForkserverPlan(made, roles, cores.judge)


class DeviceHost:
    """Everything that outlives one evaluation. Lifetime: the supervisor process."""

    def __init__(
        self,
        home: Path,
        device: Device = CPU,
        layers: tuple[str, ...] = (ALL_LAYERS,),
        available: list[int] | None = None,
        begun: Forkserver | None = None,
    ) -> None:
        self.home, self.device, self.layers = home, device, layers
        # A second host of one supervisor finds its affinity narrowed by the first.
        self.cores = plan_cores(available or list(os.sched_getaffinity(0)))
        os.sched_setaffinity(0, self.cores.judge)
        plan = forkserver_plan(device, self.cores)
        if begun is not None and not begun.forks_for(plan.environment, plan.roles):
            begun.close()
            begun = None
        self.forkserver = begun or Forkserver(plan.environment, plan.roles)
        self.compilers = Forkserver(
            {**device.environment, "OMP_NUM_THREADS": "1"}, forkserver_client.COMPILER_ROLES
        )
        self.sequences = itertools.count(1)
        """Numbers of calls on a device, of which none comes twice in the life of a judge."""
        self.suspect = False
        """Whether the last candidate may have left the device in a bad state."""
        self.bad_probes = 0
        """How often in a row the device failed to compute something known."""
        self.call_shapes: dict[str, Fields] = {}
        """`init` and `calls` of a precompilation, by the digest of a problem: without values."""
        self.idle_judges: dict[str, IdleJudge] = {}
        """Judges for the next candidates of their problems, longest idle first."""
        self.prepared: IdleJudge | None = None
        """The judge of the evaluation that waits for the exclusive lease."""
        self._closing: list[Closeable] = []
        self._children = WeakValueDictionary[int, Child]()
        """The last child of each uid, by its place among the uids."""
        self._forks = 0
        number = int(device.name.partition(":")[2]) + 1 if device.is_gpu else 0
        self._uids = (os.getpid() + number) % UID_BLOCKS * SLOTS_OF_UIDS
        """The first uid of the device's children. The supervisor's process id and the device select
        one of sixteen blocks, so that supervisors started one after the other rarely share one."""
        lease = lease_name(device, self.cores) if device.is_gpu else None
        self.preforked = PreforkPool(self._fork, lease)
        self.ledger = None if lease is None else MemoryLedger(lease)
        """The bytes that each supervisor holds on the device; `None` on a CPU."""
        self.leased = False
        """Whether an evaluation of ours holds the lease now."""
        self.makes_room = False
        """Whether that evaluation waits for other supervisors, so that nothing is timed."""

    def spawn(
        self,
        role: str,
        limits: Limits,
        extra_paths: tuple[str, ...] = (),
        *,
        streams: bool = False,
    ) -> Child:
        """Return a confined child, preforked or forked now; the caller calls `wait_ready` first.

        A preforked runner on a GPU has queues for one stream; with `streams` a new one is forked.
        """
        streams = streams and self.device.is_gpu
        child = None
        if not extra_paths and not streams:
            child = self.preforked.take(role, limits)
        return child or self._fork(role, limits, extra_paths, streams=streams)

    def prefork(self, limits: Limits) -> None:
        """Prefork children, so that the next evaluation finds them confined and waiting."""
        self.wait_closed()
        if self.device.is_gpu:
            self.compilers.begin()
        # Nothing is opened on a device that may be in a bad state: it is probed first.
        counts = PREFORKED_ON_GPU if self.device.is_gpu else PREFORKED
        self.preforked.fill(limits, counts, opened=not self.suspect)
        # Those that are not open yet will be, at a moment of which nobody is told.
        self._publish(len(self.preforked) - self.preforked.opened)

    def _fork(
        self, role: str, limits: Limits, extra_paths: tuple[str, ...] = (), *, streams: bool = False
    ) -> Child:
        on_gpu = self.device.is_gpu
        timed = role == "runner" and not on_gpu
        own_paths = (str(pool_library(self.home)),) if on_gpu else ()
        cores = self.cores.runners if role == "runner" else self.cores.judge
        slot = self._free_slot()
        values = confinement(
            self._uids + slot,
            limits,
            limits.memory_bytes * (JUDGE_MEMORY if role == "judge" else 1),
            cores=cores,
            threads=len(cores),
            device=self.device_of(role, streams=streams),
            skipped_pids=int(role == "judge" and on_gpu),
            extra_paths=(*own_paths, *extra_paths),
            layers=tuple(
                # Only runners on the CPU get the process-creation guard.
                layer
                for layer in (ISOLATION_LAYERS if ALL_LAYERS in self.layers else self.layers)
                if timed or layer != IsolationLayer.PROCESS_CREATION_GUARD
            ),
        )
        server = self.compilers if role == "compiler" else self.forkserver
        child = server.fork(role, values, limits.stdout_bytes)
        self._children[slot] = child
        return child

    def _free_slot(self) -> int:
        """Return the place of a uid that no living child has: an idle judge outlives many."""
        for _ in range(SLOTS_OF_UIDS):
            self._forks += 1
            last = self._children.get(self._forks % SLOTS_OF_UIDS)
            if last is None or last.closed:
                return self._forks % SLOTS_OF_UIDS
        raise InfrastructureError(
            f"{SLOTS_OF_UIDS} children of one supervisor live: no uid is free"
        )

    def device_of(self, role: str, *, streams: bool) -> Device:
        """Return the device as a child of this role sees it."""
        if role == "compiler":
            # It runs before the lease: it gets no device to run on.
            return replace(self.device, nodes=())
        if role == "runner" and self.device.is_gpu and not streams:
            return few_queues(self.device)
        return self.device

    def take_idle_judge(self, key: str) -> IdleJudge | None:
        """Return the living idle judge of a problem, if one is kept; make room for its return."""
        found = self.idle_judges.pop(key, None)
        while self.idle_judges and self._is_crowded():
            self.idle_judges.pop(next(iter(self.idle_judges))).kill()
        if found is not None and not found.judge.alive():
            found.kill()
            return None
        return found

    def _is_crowded(self) -> bool:
        """Tell whether no further judge may idle, or half of a device's memory is in use."""
        found = (conditions(self.device.uuid) if self.device.is_gpu else None) or Conditions()
        total, used = found.total_bytes or 0, found.used_bytes or 0
        most = max(int(total * MAX_IDLE_SHARE) // MAX_IDLE_BYTES, MAX_IDLE_JUDGES)
        return len(self.idle_judges) >= min(most, MAX_IDLE_JUDGES_ON_GPU) or 2 * used > total > 0

    def announce_judge(self) -> None:
        """Let other supervisors know of a judge that is about to start."""
        self._publish(1)

    def keep_prepared(self, idle: IdleJudge) -> None:
        """Count a judge that waits for the exclusive lease; other supervisors may have it ended."""
        self.prepared = idle
        self._publish()

    @property
    def held_bytes(self) -> int:
        """Return the bytes of the device that our idle processes hold, about as many."""
        kept = [*self.idle_judges.values(), *([self.prepared] if self.prepared else [])]
        judges = sum(idle.held_bytes for idle in kept)
        return judges + CONTEXT_BYTES * self.preforked.opened

    @property
    def shares_memory(self) -> bool:
        """Tell whether idle processes, ours or another supervisor's, hold memory of the device."""
        if self.ledger is None:
            return False
        return self.held_bytes > 0 or any(self.ledger.others().values())

    def _publish(self, unopened: int = 0) -> None:
        if self.ledger is not None:
            self.ledger.publish(self.held_bytes + CONTEXT_BYTES * unopened)

    def answer_request(self) -> None:
        """End all that idles if the holder of the lease has asked for it, and it is not us."""
        if self.ledger is not None and not self.leased and self.ledger.release_requested:
            self.end_idle()
            self.ledger.answer()

    def release_idle(self) -> None:
        """End all that idles, and let other supervisors see it; what is imported stays."""
        self.end_idle()
        self._publish()

    def request_release(
        self, names: Iterable[str], timeout_s: float, watch: Callable[[], None]
    ) -> list[str]:
        """Ask other supervisors to release what they keep; return those that did not answer.

        `watch` may answer requests for our other devices meanwhile.
        """
        if self.ledger is None:
            return []
        self.makes_room = True
        try:
            return self.ledger.request_release(names, timeout_s, watch)
        finally:
            self.makes_room = False

    def evict(self, lacking_bytes: int, keep: str) -> int:
        """End judges that idle, longest first, for these bytes; return how many were freed.

        The judge under the key `keep` stays.
        """
        freed = 0
        for key in [key for key in self.idle_judges if key != keep]:
            if freed >= lacking_bytes:
                break
            idle = self.idle_judges.pop(key)
            idle.kill()
            freed += idle.held_bytes
        return freed

    def close_later(self, runner: Closeable) -> None:
        """Kill a runner that is not needed any more, without waiting for its end."""
        runner.child.kill_async()
        self._closing.append(runner)

    def wait_closed(self) -> None:
        """Release what killed runners held, once they have ended.

        On a GPU their memory must be free before the next evaluation, so this waits for each. On a
        CPU it waits `CLOSE_S` in all: a process that cannot end now is released at a later call.
        """
        until = time.monotonic() + CLOSE_S
        waiting, self._closing = self._closing, []
        for runner in waiting:
            if self.device.is_gpu or runner.child.gone(max(until - time.monotonic(), 0.0)):
                runner.close()
            else:
                self._closing.append(runner)

    def end_idle(self) -> None:
        """End all that idles, to make room on the device."""
        self.preforked.clear()
        prepared, self.prepared = self.prepared, None
        if prepared is not None:
            prepared.kill()
        while self.idle_judges:
            self.idle_judges.popitem()[1].kill()

    @contextmanager
    def lease(
        self, waiting: Callable[[str], None], watch: Callable[[], None], *, shared: bool = False
    ) -> Iterator[None]:
        """Hold the GPU or the timed cores; a second command waits and says so.

        Evaluations that time nothing may hold it `shared`, together. An evaluation that holds it
        unshared is the only holder.
        """
        self.preforked.stop()
        name = lease_name(self.device, self.cores)
        with DeviceLease(name, shared=shared) as lease:
            notice_at = time.monotonic() + LEASE_NOTICE_S
            while not lease.try_take():
                if time.monotonic() > notice_at:
                    pid = lease.holder()
                    whose = "" if pid is None else f" (process {pid})"
                    text = f"device {name} is in use by another evaluation{whose}; waiting for it"
                    waiting(text)
                    notice_at = math.inf
                watch()
                # The holder may need the memory that we keep for later.
                self.answer_request()
                time.sleep(LEASE_POLL_S)
            self.preforked.wait_opening()
            self.leased = True
            try:
                yield
            finally:
                self.leased = False
                self._publish()

    def close(self) -> None:
        """End every child and the forkserver."""
        while self._closing:
            self._closing.pop().close()
        self.end_idle()
        if self.ledger is not None:
            self.ledger.close()
        self.forkserver.close()
        self.compilers.close()
