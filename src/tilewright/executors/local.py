"""Evaluation on this machine, in supervisor processes. This module needs no torch."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence, Set
from dataclasses import asdict
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from tilewright import errors
from tilewright.evaluator.devices.devices import find_device, plan_cores
from tilewright.evaluator.processes.host import ForkserverPlan, forkserver_plan
from tilewright.executors.base import Progress, WorkerPool, failure, ignore_progress
from tilewright.executors.scheduling import WorkerLoad
from tilewright.records import EvalReport, EvalRequest
from tilewright.records.problem_lint import Health
from tilewright.wire.frames import Channel, ChannelClosed, DeadlineExceeded, Frame, FrameError

START_S = 60.0
"""Seconds within which a supervisor must answer after its start."""
STOP_S = 5.0
"""Seconds that a supervisor has to end before it is killed."""
POLL_S = 0.5
"""Seconds between two calls of `idle` while a request waits for a supervisor."""
MIN_CORES_PER_DEVICE = 2
"""Cores of a device: one times, one does everything else."""
Attach = Callable[[ForkserverPlan], Channel | None]
_LOST = (ChannelClosed, DeadlineExceeded, FrameError)


def without_host(plan: ForkserverPlan) -> Channel | None:  # noqa: ARG001 - the type of `attach`
    """Attach to nothing."""
    return None


class LocalExecutor(WorkerPool["Supervisor"]):
    """Supervisors and everything below them. Lifetime: until `close`, or the end of this process.

    Safe to use from several threads. One evaluation holds a device from its first to its last call
    there; others meanwhile read, build and compile.

    Args:
        home: folder of caches and calibration.
        workers: evaluations that run at once.
        devices: devices that share the work, each with a part of the cores. A request then runs
            on any of them; without them it runs on the device that it names.
        cores: cores to use if others have leased the rest.
        attach: connects to a supervisor of a warm host, or returns `None` if there is no host.
    """

    def __init__(
        self,
        home: Path,
        workers: int = 1,
        devices: Sequence[str] = (),
        *,
        cores: tuple[int, ...] = (),
        attach: Attach = without_host,
    ) -> None:
        if workers < 1:
            raise errors.ConfigError(f"an executor needs at least one worker, not {workers}")
        super().__init__()
        parts = zip(devices, share_cores(devices), strict=True)
        places: list[tuple[str | None, tuple[int, ...]]]
        places = [(name, cores or part) for name, part in parts] or [(None, ())]
        count = max(workers, len(places))
        self.supervisors = [
            Supervisor(home, *places[n % len(places)], attach) for n in range(count)
        ]

    def evaluate(
        self,
        request: EvalRequest,
        progress: Progress = ignore_progress,
        *,
        checks: tuple[str, ...] | None = None,
        idle: Callable[[], None] | None = None,
    ) -> EvalReport:
        """Judge one candidate, as `Executor.evaluate`.

        `idle` is called at intervals, also while the request waits; what it raises ends the
        evaluation.
        """
        with self._acquired(_problem_of(request), POLL_S, idle) as supervisor:
            fields = {"checks": None if checks is None else list(checks)}
            answer = supervisor.call("evaluate", fields, request, progress, idle)
            return EvalReport.from_json(answer)

    def lint(self, request: EvalRequest, progress: Progress = ignore_progress) -> Health:
        """Find answers that pass on a request's problem and do no work."""
        with self._acquired(_problem_of(request), POLL_S) as supervisor:
            return Health.from_json(supervisor.call("lint", {}, request, progress))

    def _candidates(self) -> tuple[Sequence[Supervisor], Set[str]]:
        # An unused device is worth more than a cached judge, so no request waits for a judge then.
        running = [item for item in self.supervisors if item.load]
        idle = [item for item in self.supervisors if not item.load]
        idle.sort(key=lambda item: item.idle_at)
        used = {item.device for item in running}
        free = [item for item in idle if item.device not in used]
        busy = set() if free else {name for item in running for name in item.cached}
        return free or idle, busy

    def _released(self, worker: Supervisor) -> None:
        worker.idle_at = time.monotonic()

    @property
    def pid(self) -> int | None:
        """Return the first supervisor's process id, or `None` before its first evaluation."""
        return self.supervisors[0].pid

    def close(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not any(item.load for item in self.supervisors))
            for supervisor in self.supervisors:
                supervisor.stop()

    def kill(self) -> None:
        with self._changed:
            self._kill()
        for supervisor in self.supervisors:
            supervisor.abort()


def _problem_of(request: EvalRequest) -> str:
    return f"{request.device} {request.problem.digest()}"


def share_cores(devices: Sequence[str]) -> list[tuple[int, ...]]:
    """Share this machine's cores among devices, so that no two time on the same ones."""
    cores = sorted(os.sched_getaffinity(0))
    each = len(cores) // max(len(devices), 1)
    if len(devices) < 2 or each < MIN_CORES_PER_DEVICE:
        return [() for _ in devices]
    return [tuple(cores[n * each : (n + 1) * each]) for n in range(len(devices))]


_supervisors = WeakValueDictionary[int, "Supervisor"]()
"""Those of this process. A fork must not use their sockets: one would read the other's answers."""


def _leave_all_to_parent() -> None:
    for supervisor in list(_supervisors.values()):
        supervisor.leave_to_parent()


os.register_at_fork(after_in_child=_leave_all_to_parent)


class Supervisor(WorkerLoad):
    """One supervisor process, attached or started with its first request. It judges one at a time.

    Without `device` it judges on the device that a request names, without `cores` on all cores.
    """

    def __init__(
        self, home: Path, device: str | None, cores: tuple[int, ...], attach: Attach = without_host
    ) -> None:
        super().__init__()
        self._home = home
        self.device = device
        self._cores = cores
        # A supervisor of a host has the cores of this process.
        self._attach = without_host if cores else attach
        self.idle_at = 0.0
        """When it finished its last request, by the monotonic clock."""
        self.pid: int | None = None
        self._channel: Channel | None = None
        self._process: subprocess.Popen[bytes] | None = None
        """Its process; `None`: it is a warm host's, or not started."""
        self._aborted = False
        _supervisors[id(self)] = self

    def call(
        self,
        kind: str,
        fields: dict[str, Any],
        request: EvalRequest,
        progress: Progress,
        idle: Callable[[], None] | None = None,
    ) -> bytes:
        """Send a request, and return the result once the process has sent it.

        If a supervisor of a warm host is lost, another one, of our own, gets the request.
        """
        if self.device is not None:
            request = request.model_copy(update={"device": self.device})
        try:
            channel = self._channel or self._start(request.device)
            channel.send(kind, fields, request.to_json().encode())
            last = self._last_frame(channel, progress, idle)
        except _LOST as error:
            hosted = self._process is None
            self.stop()
            if not hosted or self._aborted:
                raise errors.InfrastructureError(f"the supervisor was lost: {error}") from error
        except BaseException:
            # An unfinished exchange, as after an error of a callback. The next request must not
            # read the rest of it: it needs another process.
            self.stop()
            raise
        else:
            if last.kind == "failed":
                raise failure(last.fields)
            return last.body
        self._attach = without_host
        progress("host_lost", {"message": "the warm host was lost; going on without it"})
        return self.call(kind, fields, request, progress, idle)

    def _last_frame(
        self, channel: Channel, progress: Progress, idle: Callable[[], None] | None
    ) -> Frame:
        """Report each event of an exchange, and return the frame that ends it."""
        while True:
            frame = channel.receive(None, idle)
            if frame.kind == "broken":
                # The supervisor ends after an internal error; the next request gets another.
                raise errors.InfrastructureError(frame.fields["message"])
            if frame.kind != "event":
                return frame
            progress(frame.fields.pop("event"), frame.fields)

    def _start(self, device: str) -> Channel:
        try:
            self._home.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise errors.ConfigError(
                f"home {self._home}: cannot be made ({error.strerror}); set TILEWRIGHT_HOME"
            ) from error
        cores = plan_cores(list(self._cores or os.sched_getaffinity(0)))
        plan = forkserver_plan(find_device(device), cores)
        try:
            channel = self._channel = self._attach(plan) or self._launch(plan)
        except OSError as error:
            # A limit of this machine, which may have room again later.
            raise errors.InfrastructureError(
                f"no supervisor can be started: {errors.reason_of(error)}"
            ) from error
        if self._aborted:
            # `abort` may have come before there was anything to end.
            self.abort()
            raise errors.InfrastructureError("the executor was closed")
        self.pid = channel.receive(time.monotonic() + START_S).fields["pid"]
        return channel

    def _launch(self, plan: ForkserverPlan) -> Channel:
        ours, theirs = socket.socketpair()
        # -P: a candidate in the current folder may be named like a module.
        command = [sys.executable, "-P", "-m", "tilewright.evaluator.server"]
        command += ["--channel", str(theirs.fileno()), "--home", str(self._home)]
        command += ["--forkserver", json.dumps(asdict(plan))]
        if self._cores:
            command += ["--cores", ",".join(map(str, self._cores))]
        try:
            self._process = subprocess.Popen(
                command,
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                # The terminal's interrupt reaches this process alone, which ends the supervisor.
                process_group=0,
            )
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
        return Channel(ours)

    def abort(self) -> None:
        """Kill the process and its children; a caller that waits for it gets an error."""
        self._aborted = True
        if (process := self._process) is not None:
            process.kill()
        elif (channel := self._channel) is not None:
            # The warm host's supervisor ends when its client is gone.
            channel.shut_down()

    def leave_to_parent(self) -> None:
        """Forget the process, which belongs to the one that this process was forked from."""
        if self._channel is not None:
            self._channel.close()
        self._channel, self._process, self.pid = None, None, None

    def stop(self) -> None:
        """End the process and wait until it is gone; a warm host's goes back to the host."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None
        self.pid = None
        if self._process is not None:
            try:
                self._process.wait(timeout=STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None
