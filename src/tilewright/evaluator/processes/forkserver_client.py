"""The supervisor's children: the forkserver, and what it forks."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from tilewright.errors import InfrastructureError
from tilewright.evaluator.processes.memory_use import MemoryMeter
from tilewright.evaluator.processes.process_tree import ProcessTree
from tilewright.evaluator.processes.sandbox_policy import forkserver_environment
from tilewright.evaluator.processes.spawn_guard import SpawnGuard
from tilewright.wire import frames
from tilewright.wire.frames import Channel, Fields, Frame
from tilewright.wire.readiness import is_readable

BUILDER = "builder=tilewright.runner.build_main"
CPU_ROLES = (
    *("runner=tilewright.runner.main", BUILDER),
    "judge=tilewright.evaluator.judge.process",
)
GPU_ROLES = (
    *("runner=tilewright.runner.gpu_memory", BUILDER),
    "judge=tilewright.evaluator.judge.gpu_process",
)
COMPILER_ROLES = ("compiler=tilewright.runner.compile_main",)
"""Apart: what it imports takes as long as all the rest, and the first candidate needs none."""
START_S = 120.0
KILL_S = 5.0
"""Most seconds that a killed process tree may take to end; one in a call of a driver takes long."""
_CLOSED = (frames.ChannelClosed, frames.DeadlineExceeded)
_LOST = (*_CLOSED, frames.FrameError)


class ChildLost(InfrastructureError):
    """A child of ours ended, or did not answer in time."""


class ChildOutput:
    """Drains what a child prints, keeping the first `limit` bytes."""

    def __init__(self, limit: int) -> None:
        self._reader, self.writer = os.pipe()
        self._limit = limit
        self._kept: list[bytes] = []
        self._thread = threading.Thread(target=self._drain, daemon=True)
        self._thread.start()

    def _drain(self) -> None:
        left = self._limit
        with suppress(OSError):
            while data := os.read(self._reader, 1 << 16):
                if left:
                    self._kept.append(data[:left])
                    left -= len(self._kept[-1])

    def text(self) -> str:
        """Return what was printed so far, cut to the limit."""
        return b"".join(self._kept).decode(errors="replace")

    def close(self) -> None:
        """Wait for the last bytes of a dead child and close the pipe."""
        self._thread.join(timeout=1.0)
        os.close(self._reader)


class Child:
    """A judge, runner or builder: its channel, its clock, its end. Lifetime: one process tree."""

    def __init__(
        self, channel: Channel, init_pid: int, status_fd: int, output: ChildOutput, role: str
    ) -> None:
        self.channel = channel
        self.role = role
        self.output = output
        self.applied: dict[str, str] = {}
        self._init_pidfd = os.pidfd_open(init_pid)
        self.pid = init_pid
        self._status_fd = status_fd
        self._status: int | None = None
        self.tree = ProcessTree(init_pid)
        self.memory = MemoryMeter(self.tree, lambda: channel.descriptors)
        self.spawn_guard: SpawnGuard | None = None
        """Where the child asks before it starts a process, if it does."""
        self.closed = False
        self._ready = self._asked_to_begin = False
        self.begun = False
        """Whether it has opened its device."""

    def wait_ready(self, timeout_s: float = 20.0) -> None:
        """Wait until the child says that it is confined, and note its layers; raise if it fails."""
        if self._ready:
            return
        frame = self._receive_first("ready", timeout_s)
        self.spawn_guard = SpawnGuard(frame.fds[0]) if frame.fds else None
        applied = frame.fields.get("applied")
        if not isinstance(applied, dict):
            self.kill()
            raise InfrastructureError(f"the {self.role} does not say which layers it has")
        self.applied, self._ready = applied, True
        self.memory.start()

    def ask_to_begin(self) -> None:
        """Have a runner open its GPU, once: it makes a context, and holds no candidate yet."""
        if not self._asked_to_begin:
            send_frame(self, "begin", {})
            self._asked_to_begin = True

    def begin(self, timeout_s: float = 20.0) -> None:
        """Have a runner open its GPU, and wait until it has."""
        if not self.begun:
            self.ask_to_begin()
            self._receive_first("device_open", timeout_s)
            self.begun = True

    def _receive_first(self, kind: str, timeout_s: float) -> Frame:
        try:
            frame = self.channel.receive(time.monotonic() + timeout_s)
        except _LOST as error:
            text = self.output.text()[-500:]
            self.kill()
            raise InfrastructureError(f"the {self.role} did not start: {error}. {text}") from error
        if frame.kind != kind:
            self.kill()
            text = frame.fields.get("message", "")
            raise InfrastructureError(f"the {self.role} started with {frame.kind!r}: {text}")
        return frame

    def forbid_processes(self) -> bool:
        """Kill the payload's other processes, let it start none, and tell whether that worked."""
        if self.spawn_guard is None:
            return True
        self.spawn_guard.closed = True
        return self.tree.forbid_processes()

    def allow_processes(self) -> None:
        """Let the child start processes again."""
        if self.spawn_guard is not None:
            self.spawn_guard.closed = self.tree.single_process = False

    def wait_status(self, timeout_s: float) -> int | None:
        """Return the wait status of the child's payload, or `None` while it lives."""
        if self._status is None and not self.closed:
            ready = is_readable(self._status_fd, timeout_s)
            data = os.read(self._status_fd, 4) if ready else b""
            if len(data) == 4:
                self._status = int.from_bytes(data, "little", signed=True)
        return self._status

    def alive(self) -> bool:
        """Tell whether the child's init still runs."""
        return not self.gone(0)

    def kill_async(self) -> None:
        """Kill the whole tree, and do not wait until it is gone."""
        if not self.closed:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._init_pidfd, signal.SIGKILL)

    def gone(self, within_s: float) -> bool:
        """Tell whether the whole tree is gone, or is within these seconds."""
        return self.closed or is_readable(self._init_pidfd, within_s)

    def kill(self) -> None:
        """Kill the whole tree, wait until it is gone, and release every descriptor."""
        if self.closed:
            return
        self.kill_async()
        self.gone(KILL_S)
        self.wait_status(0)
        self.closed = True
        self.tree.close()
        if self.spawn_guard is not None:
            self.spawn_guard.close()
        self.channel.close()
        os.close(self._init_pidfd)
        os.close(self._status_fd)
        self.output.close()


class Forkserver:
    """Owns one forkserver process. Started on first use, started again when it died."""

    def __init__(self, environment: dict[str, str], roles: tuple[str, ...]) -> None:
        self._environment, self._roles = environment, roles
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: Channel | None = None
        self._starting: Channel | None = None
        """The channel of a process that has not said yet that it is up."""
        self.starts = 0
        self.pid: int | None = None

    def forks_for(self, environment: dict[str, str], roles: tuple[str, ...]) -> bool:
        """Tell whether its children have this environment and these roles."""
        return (self._environment, self._roles) == (environment, roles)

    def begin(self) -> None:
        """Start the process, if there is none, without waiting for it."""
        if self._process is None:
            self._starting = self._launch()

    def _launch(self) -> Channel:
        self.close()
        ours, theirs = socket.socketpair()
        command = [sys.executable, "-P", "-m", "tilewright.runner.forkserver"]
        command += ["--channel", str(theirs.fileno()), "--parent", str(os.getpid())]
        command += [part for role in self._roles for part in ("--role", role)]
        self._process = subprocess.Popen(
            command,
            pass_fds=(theirs.fileno(),),
            env=forkserver_environment(self._environment),
            stdin=subprocess.DEVNULL,
            cwd="/",
        )
        self.pid = self._process.pid
        theirs.close()
        return Channel(ours)

    def _start(self) -> Channel:
        channel, self._starting = self._starting or self._launch(), None
        try:
            frame = channel.receive(time.monotonic() + START_S)
        except _LOST as error:
            raise InfrastructureError(f"the forkserver did not start: {error}") from error
        if frame.kind != "up" or frame.fields["threads"] != 1:
            raise InfrastructureError(f"the forkserver must have one thread, has {frame.fields}")
        self.starts += 1
        self._channel = channel
        return channel

    def fork(self, role: str, confinement: Fields, output_bytes: int) -> Child:
        """Fork a confined child, not `ready` yet; raise if no forkserver can be started."""
        for attempt in (1, 2):
            channel = self._channel or self._start()
            try:
                return self._fork(channel, role, confinement, output_bytes)
            except _CLOSED as error:
                self.close()
                if attempt == 2:
                    raise InfrastructureError(f"the forkserver died twice: {error}") from error
        raise AssertionError("unreachable")

    def _fork(self, channel: Channel, role: str, confinement: Fields, output_bytes: int) -> Child:
        ours, theirs = socket.socketpair()
        status_reader, status_writer = os.pipe()
        output = ChildOutput(output_bytes)
        fds, lost = (theirs.fileno(), status_writer, output.writer), False
        try:
            channel.send("fork", {"role": role, "confinement": confinement}, fds=fds)
            frame = channel.receive(time.monotonic() + 20.0)
        except _CLOSED:
            ours.close()
            os.close(status_reader)
            lost = True
            raise
        finally:
            theirs.close()
            os.close(status_writer)
            os.close(output.writer)
            if lost:
                output.close()
        return Child(Channel(ours), frame.fields["pid"], status_reader, output, role)

    def close(self) -> None:
        """End the forkserver; children that it forked die with it."""
        for channel in filter(None, (self._channel, self._starting)):
            channel.close()
        self._channel = self._starting = None
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = self.pid = None


def send_frame(
    child: Child, kind: str, fields: Fields, body: bytes = b"", fds: tuple[int, ...] = ()
) -> None:
    """Send a frame to a trusted child; raise `ChildLost` if it has ended."""
    with _talk(child, kind):
        child.channel.send(kind, fields, body, fds)


def receive_frame(child: Child, kind: str, timeout_s: float, idle: Callable[[], None]) -> Frame:
    """Return a trusted child's answer to its oldest open frame, a `kind`; raise `ChildLost`."""
    with _talk(child, kind):
        return child.channel.receive(time.monotonic() + timeout_s, idle)


@contextmanager
def _talk(child: Child, kind: str) -> Iterator[None]:
    try:
        yield
    except _LOST as error:
        text = child.output.text()[-800:]
        raise ChildLost(f"the {child.role} was lost at {kind!r}: {error}. {text}") from error
