"""Evaluation on this machine, in supervisor processes of our own. Needs no torch here."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from tilewright import errors
from tilewright.records import EvalReport, EvalRequest
from tilewright.records.problem_lint import Health
from tilewright.wire.frames import Channel, ChannelClosed, DeadlineExceeded, FrameError

__all__ = ["LocalExecutor", "choose_assignment", "share_cores"]

START_S = 60.0
IDLE_S = 0.5
MAX_KNOWN_PROBLEMS = 8
"""How many judges a supervisor keeps on a GPU (`evaluator.host`)."""
MIN_CORES_PER_DEVICE = 2
"""For each device: one that times, and one for all else."""
MAX_PASSED_OVER = 16
"""How often a request is passed over by others that came later."""
Progress = Callable[[str, dict[str, Any]], None]


def _silent(event: str, fields: dict[str, Any]) -> None:
    """Ignore progress."""


class LocalExecutor:
    """Supervisors and everything below them. Lifetime: until `close`, or the end of this process.

    Safe to use from several threads. As many evaluations as there are `workers` are under way at
    once; each holds the device alone from its first to its last call there, so what overlaps is
    reading, building and compiling. Several `devices` share the work, each with a part of the
    cores: then a request goes to any of them, whatever it names itself. `cores` are all that may be
    used, where others of this machine have leased the rest.
    """

    def __init__(
        self,
        home: Path,
        workers: int = 1,
        devices: Sequence[str] = (),
        *,
        cores: tuple[int, ...] = (),
    ) -> None:
        if workers < 1:
            raise errors.ConfigError(f"an executor needs at least one worker, not {workers}")
        places = [
            Slot(name, cores or part)
            for name, part in zip(devices, share_cores(devices), strict=True)
        ]
        places = places or [Slot()]
        count = max(workers, len(places))
        self._idle = [Supervisor(home, places[n % len(places)]) for n in range(count)]
        self._all = tuple(self._idle)
        self._waiting: list[_PendingRequest] = []
        self._changed = threading.Condition()
        self._over = False

    def evaluate(
        self,
        request: EvalRequest,
        progress: Progress = _silent,
        *,
        checks: tuple[str, ...] | None = None,
        idle: Callable[[], None] | None = None,
    ) -> EvalReport:
        """Judge one candidate and return the report.

        `idle` is called now and then while nothing is told, also while others are judged first;
        what it raises ends the evaluation.

        Raises:
            TilewrightError: the problem cannot be used, or our side failed.
        """
        with self._acquire_supervisor(request, idle) as supervisor:
            return supervisor.evaluate(request, progress, checks, idle)

    def lint(self, request: EvalRequest, progress: Progress = _silent) -> Health:
        """Find out which answers pass on a request's problem that do no work.

        Raises:
            TilewrightError: our side failed.
        """
        with self._acquire_supervisor(request) as supervisor:
            return supervisor.lint(request, progress)

    async def evaluate_async(
        self, request: EvalRequest, progress: Progress = _silent
    ) -> EvalReport:
        """Judge one candidate without blocking the event loop."""
        return await asyncio.to_thread(self.evaluate, request, progress)

    @contextmanager
    def _acquire_supervisor(
        self, request: EvalRequest, idle: Callable[[], None] | None = None
    ) -> Iterator[Supervisor]:
        """Wait for a supervisor, best one that knows the problem: there its judge is warm."""
        ticket = _PendingRequest(f"{request.device} {request.problem.digest()}")
        with self._changed:
            self._waiting.append(ticket)
            self._dispatch()
            try:
                while not self._changed.wait_for(lambda: ticket.supervisor or self._over, IDLE_S):
                    if idle is not None:
                        idle()
                if ticket.supervisor is None or self._over:
                    raise errors.InfrastructureError("the executor was ended")
            except BaseException:
                self._give_up(ticket)
                raise
        chosen = ticket.supervisor
        assert chosen is not None
        try:
            yield chosen
        finally:
            with self._changed:
                self._idle.append(chosen)
                self._dispatch()

    def _dispatch(self) -> None:
        """Give idle supervisors, who idled longest first, the requests that suit them best."""
        while self._idle and self._waiting:
            tickets = [(item.problem, item.passed) for item in self._waiting]
            at_work = [item for item in self._all if item not in self._idle]
            used = {item.place.device for item in at_work}
            # A device that nobody uses is worth more than a judge that is warm.
            free = [item for item in self._idle if item.place.device not in used]
            known = [tuple(item.problems) for item in free or self._idle]
            busy = set() if free else {name for item in at_work for name in item.problems}
            suited = choose_assignment(tickets, known, busy)
            if suited is None:
                break
            place, worker = suited
            for earlier in self._waiting[:place]:
                earlier.passed += 1
            ticket, supervisor = self._waiting.pop(place), (free or self._idle)[worker]
            self._idle.remove(supervisor)
            supervisor.remember(ticket.problem)
            ticket.supervisor = supervisor
        # Whoever closes waits for something else than who evaluates.
        self._changed.notify_all()

    def _give_up(self, ticket: _PendingRequest) -> None:
        if ticket in self._waiting:
            self._waiting.remove(ticket)
        if ticket.supervisor is not None:
            self._idle.append(ticket.supervisor)
            self._dispatch()

    @property
    def pid(self) -> int | None:
        """Return the first supervisor's process id, or `None` before its first evaluation."""
        return self._all[0].pid

    def close(self) -> None:
        """Let evaluations under way finish, end the supervisors, and wait until they are gone."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._idle) == len(self._all))
            for supervisor in self._all:
                supervisor.stop()

    def kill(self) -> None:
        """End the supervisors with whatever they are judging; who waits for it gets an error."""
        with self._changed:
            # Who still waits begins nothing.
            self._over = True
            self._changed.notify_all()
        for supervisor in self._all:
            supervisor.abort()

    def __enter__(self) -> Self:
        """Return the executor itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()


def choose_assignment(
    waiting: Sequence[tuple[str, int]], idle: Sequence[Sequence[str]], busy: Set[str]
) -> tuple[int, int] | None:
    """Return which request goes to which idle supervisor, as indices; `None`: better none yet.

    `waiting` has the problem of each request, oldest first, and how often later ones were served
    before it; `idle` the problems that each supervisor knows, who idled longest first; `busy` the
    problems that are known to supervisors at work. First comes who was passed over too often, then
    a request whose problem a supervisor knows, then one that nobody knows, then one of several
    that wait for the same problem. A single one waits for who knows its problem: the device is
    one's alone anyhow, and to make another judge for it takes longer.
    """
    late = next((i for i, (_, passed) in enumerate(waiting) if passed >= MAX_PASSED_OVER), None)
    rows = [(late, waiting[late])] if late is not None else list(enumerate(waiting))
    for place, (problem, _) in rows:
        for worker, known in enumerate(idle):
            if problem in known:
                return place, worker
    for place, (problem, _) in rows:
        if problem not in busy:
            # Who knows least has most room for another problem.
            return place, min(range(len(idle)), key=lambda worker: len(idle[worker]))
    if late is not None:
        return late, 0
    counts = Counter(problem for problem, _ in waiting)
    several = (place for place, (problem, _) in enumerate(waiting) if counts[problem] > 1)
    first = next(several, None)
    return None if first is None else (first, 0)


@dataclass(eq=False)
class _PendingRequest:
    """Who waits for a supervisor, and then has it."""

    problem: str
    passed: int = 0
    supervisor: Supervisor | None = None


@dataclass(frozen=True)
class Slot:
    """Where a supervisor judges."""

    device: str | None = None
    """`None`: on whichever device a request names."""
    cores: tuple[int, ...] = ()
    """Cores that the supervisor and its children may use; empty: all."""


def share_cores(devices: Sequence[str]) -> list[tuple[int, ...]]:
    """Share this machine's cores among devices, so that no two time on the same ones."""
    cores = sorted(os.sched_getaffinity(0))
    each = len(cores) // max(len(devices), 1)
    if len(devices) < 2 or each < MIN_CORES_PER_DEVICE:
        return [() for _ in devices]
    return [tuple(cores[n * each : (n + 1) * each]) for n in range(len(devices))]


class Supervisor:
    """One supervisor process, started when it is first needed; it judges one after the other."""

    def __init__(self, home: Path, place: Slot) -> None:
        self._home = home
        self.place = place
        self._channel: Channel | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self.problems: list[str] = []
        """Device and digest of what was judged last, the latest last."""

    def remember(self, problem: str) -> None:
        """Note what it judges next."""
        known = [item for item in self.problems if item != problem]
        self.problems = [*known, problem][-MAX_KNOWN_PROBLEMS:]

    @property
    def pid(self) -> int | None:
        """Return its process id, or `None` before the first evaluation."""
        return None if self._process is None else self._process.pid

    def evaluate(
        self,
        request: EvalRequest,
        progress: Progress,
        checks: tuple[str, ...] | None,
        idle: Callable[[], None] | None = None,
    ) -> EvalReport:
        """Judge one candidate, as `LocalExecutor.evaluate`."""
        fields = {"checks": None if checks is None else list(checks)}
        return EvalReport.from_json(self._asked("evaluate", fields, request, progress, idle))

    def lint(self, request: EvalRequest, progress: Progress) -> Health:
        """Look at a problem, as `LocalExecutor.lint`."""
        return Health.from_json(self._asked("lint", {}, request, progress))

    def _asked(
        self,
        kind: str,
        fields: dict[str, Any],
        request: EvalRequest,
        progress: Progress,
        idle: Callable[[], None] | None = None,
    ) -> bytes:
        try:
            return self._exchange(kind, fields, request, progress, idle)
        except (ChannelClosed, DeadlineExceeded, FrameError) as error:
            self.stop()
            raise errors.InfrastructureError(f"the supervisor was lost: {error}") from error
        except BaseException as error:
            # An interrupt leaves the exchange half done; the next one starts afresh.
            if not isinstance(error, errors.TilewrightError):
                self.stop()
            raise

    def _exchange(
        self,
        kind: str,
        fields: dict[str, Any],
        request: EvalRequest,
        progress: Progress,
        idle: Callable[[], None] | None,
    ) -> bytes:
        channel = self._channel or self._start()
        if self.place.device is not None:
            request = request.model_copy(update={"device": self.place.device})
        channel.send(kind, fields, request.to_json().encode())
        while True:
            frame = channel.receive(None, idle)
            if frame.kind == "event":
                event = frame.fields.pop("event")
                progress(event, frame.fields)
            elif frame.kind == "broken":
                # It ends with its own error; the next evaluation starts another.
                self.stop()
                raise errors.InfrastructureError(frame.fields["message"])
            elif frame.kind == "failed":
                type_ = getattr(errors, frame.fields["type"], errors.InfrastructureError)
                raise type_(frame.fields["message"])
            else:
                return frame.body

    def _start(self) -> Channel:
        ours, theirs = socket.socketpair()
        try:
            self._home.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise errors.ConfigError(
                f"home {self._home}: cannot be made ({error.strerror}); set TILEWRIGHT_HOME"
            ) from error
        # Without the folder that we stand in: a candidate there may be called like a module.
        command = [sys.executable, "-P", "-m", "tilewright.evaluator.server"]
        command += ["--channel", str(theirs.fileno()), "--home", str(self._home)]
        if self.place.cores:
            command += ["--cores", ",".join(map(str, self.place.cores))]
        self._process = subprocess.Popen(
            command,
            pass_fds=(theirs.fileno(),),
            stdin=subprocess.DEVNULL,
            # An interrupt of the terminal reaches us alone; we end the supervisor.
            process_group=0,
        )
        theirs.close()
        channel = Channel(ours)
        channel.receive(time.monotonic() + START_S)
        self._channel = channel
        return channel

    def abort(self) -> None:
        """End the process in the middle of an evaluation; whoever waits for it notices."""
        process = self._process
        if process is not None:
            # Its children end with it.
            process.kill()

    def stop(self) -> None:
        """End the process and wait until it is gone."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None
        if self._process is not None:
            try:
                self._process.wait(timeout=5.0)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None
