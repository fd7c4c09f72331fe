"""The process of a warm host: it hands each client to a supervisor that is already up.

It loads neither torch nor pydantic, runs no request and sees no report: a supervisor speaks to its
client directly. So its death ends no evaluation. A supervisor serves one client at a time. It takes
another client only if the last one left between two requests; otherwise it ends.
"""

from __future__ import annotations

import argparse
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tilewright._version import __version__
from tilewright.executors import host_messages
from tilewright.executors.host_messages import ATTACH, STATUS, STOP, HostStatus
from tilewright.wire.frames import Channel, ChannelClosed, DeadlineExceeded, Frame, FrameError
from tilewright.wire.names import CLIENT_LEFT

IDLE_S = 600.0
"""Seconds without a client after which a host ends."""
RELEASE_S = 30.0
"""Seconds without a request after which a supervisor ends idle judges and preforked runners. They
hold memory of a device. torch stays imported."""
MAX_WAITING = 2
"""Supervisors that wait for a client: each holds about 0.4 GB of memory."""
REFUSED_S = 0.1
"""Seconds until the next look for a client after one that could not be accepted."""
GREETING_S = 0.5
"""Seconds that a client may take to send its frame once it has begun; it has about 50 bytes."""
END_S = 5.0
"""Seconds that supervisors have to end before they are killed."""
CHECK_S = 2.0
"""Seconds between two looks at whether clients can still find the socket."""
BACKLOG = 64
_LOST = (ChannelClosed, DeadlineExceeded, FrameError)


@dataclass(eq=False)
class HostedSupervisor:
    """A supervisor that takes clients from a host. Lifetime: its process."""

    process: subprocess.Popen[bytes]
    channel: Channel
    """The host sends it clients, and it tells when one has left."""
    serves: bool = False

    def give(self, client: Channel) -> None:
        """Hand it a client; raise if it has ended."""
        self.channel.send(ATTACH, fds=[client.fileno()])
        self.serves = True


@dataclass(eq=False)
class WarmHost:
    """The state of a host. Lifetime: the process."""

    path: Path
    listener: socket.socket
    inode: int
    """That of the socket at `path`, as long as clients find this host there."""
    home: str
    idle_s: float
    release_s: float
    selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)
    supervisors: list[HostedSupervisor] = field(default_factory=list)
    """The one that served last comes last."""
    ending: list[subprocess.Popen[bytes]] = field(default_factory=list)
    """Processes of supervisors that get no further client, until they have ended."""
    served_at: float = field(default_factory=time.monotonic)
    stopped: bool = False

    @property
    def clients(self) -> int:
        return sum(item.serves for item in self.supervisors)

    def run(self) -> None:
        """Serve until no client has come for long, a client stops it, or nobody can find it."""
        self.selector.register(self.listener, selectors.EVENT_READ)
        while not self.stopped and (self.clients or self._left_s() > 0):
            wait_s = CHECK_S if self.clients else min(CHECK_S, max(self._left_s(), 0.0))
            for key, _ in self.selector.select(wait_s):
                if key.fileobj is self.listener:
                    self._accept()
                elif isinstance(key.data, HostedSupervisor):
                    self._hear(key.data)
                elif isinstance(key.fileobj, Channel):
                    self._greet(key.fileobj)
            self.ending = [process for process in self.ending if process.poll() is None]
            if not self.clients and not self._is_found():
                break

    def _left_s(self) -> float:
        return self.served_at + self.idle_s - time.monotonic()

    def _is_found(self) -> bool:
        """Tell whether the socket is still ours: another host may have replaced it."""
        try:
            return self.path.stat().st_ino == self.inode
        except OSError:
            return False

    def _accept(self) -> None:
        try:
            sock, _ = self.listener.accept()
        except OSError:
            # Without a free descriptor the client stays readable, and the loop must not spin.
            time.sleep(REFUSED_S)
            return
        with suppress(OSError):
            if host_messages.is_this_user(sock):
                self.selector.register(Channel(sock), selectors.EVENT_READ)
            else:
                sock.close()

    def _greet(self, client: Channel) -> None:
        """Answer the first frame of a client, and close our end."""
        self.selector.unregister(client)
        # OSError: this machine has no room for another process. Its client starts one of its own.
        with suppress(*_LOST, OSError):
            self._answer(client, client.receive(time.monotonic() + GREETING_S))
        client.close()

    def _answer(self, client: Channel, frame: Frame) -> None:
        if frame.kind == ATTACH:
            self._attach(client, json.dumps(frame.fields.get("forkserver")))
        elif frame.kind == STATUS:
            client.send(STATUS, host_messages.encode_status(self.status()))
        elif frame.kind == STOP:
            # Also if the one that asked is gone before it has the answer.
            self.stopped = True
            client.send(STOP, {"pid": os.getpid()})

    def status(self) -> HostStatus:
        left_s, serves = max(self._left_s(), 0.0), self.clients > 0
        return HostStatus(
            pid=os.getpid(),
            version=__version__,
            home=self.home,
            clients=self.clients,
            supervisors=len(self.supervisors),
            idle_s=0.0 if serves else self.idle_s - left_s,
            ends_in_s=None if serves else left_s,
        )

    def _attach(self, client: Channel, forkserver: str) -> None:
        """Give a client the supervisor that served last, or one that begins with a forkserver."""
        for waiting in [item for item in self.supervisors[::-1] if not item.serves]:
            try:
                waiting.give(client)
            except _LOST:
                self._drop(waiting)
            else:
                return
        made = self._start(forkserver)
        made.give(client)

    def _start(self, forkserver: str) -> HostedSupervisor:
        ours, theirs = socket.socketpair()
        command = [sys.executable, "-P", "-m", "tilewright.evaluator.server"]
        command += ["--clients", str(theirs.fileno()), "--home", self.home]
        command += ["--forkserver", forkserver, "--release-s", str(self.release_s)]
        try:
            process = subprocess.Popen(
                command, pass_fds=(theirs.fileno(),), stdin=subprocess.DEVNULL, process_group=0
            )
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
        made = HostedSupervisor(process, Channel(ours))
        self.supervisors.append(made)
        self.selector.register(made.channel, selectors.EVENT_READ, made)
        return made

    def _hear(self, supervisor: HostedSupervisor) -> None:
        """Note that a supervisor has lost its client in order, or has ended."""
        self.served_at = time.monotonic()
        try:
            kind = supervisor.channel.receive(time.monotonic() + GREETING_S).kind
        except _LOST:
            kind = ""
        waiting = sum(not item.serves for item in self.supervisors)
        if kind != CLIENT_LEFT or waiting >= MAX_WAITING:
            self._drop(supervisor)
        else:
            supervisor.serves = False
            self.supervisors.remove(supervisor)
            self.supervisors.append(supervisor)

    def _drop(self, supervisor: HostedSupervisor) -> None:
        """Let a supervisor end; it does so when its channel is closed and it has no client."""
        self.supervisors.remove(supervisor)
        self.selector.unregister(supervisor.channel)
        supervisor.channel.close()
        self.ending.append(supervisor.process)

    def close(self) -> None:
        """Let no further client in, and end every supervisor."""
        if self._is_found():
            host_messages.remove(self.path)
        self.listener.close()
        for supervisor in self.supervisors:
            supervisor.channel.close()
            if supervisor.serves:
                # Its client goes on without it.
                supervisor.process.terminate()
        _end([*self.ending, *(supervisor.process for supervisor in self.supervisors)])


def _end(processes: list[subprocess.Popen[bytes]]) -> None:
    """Wait until processes have ended; kill those that do not."""
    until = time.monotonic() + END_S
    for process in processes:
        try:
            process.wait(max(until - time.monotonic(), 0.0))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def listen(path: Path) -> socket.socket:
    """Listen at a path. A socket that another host has there is replaced in one step."""
    listener = socket.socket(socket.AF_UNIX)
    fresh = path.with_suffix(f".{os.getpid()}")
    listener.bind(str(fresh))
    listener.listen(BACKLOG)
    fresh.replace(path)
    return listener


def main(argv: list[str] | None = None) -> None:
    """Listen, and return to the caller at once: a child serves in the background."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--socket", type=Path, required=True)
    parser.add_argument("--home", required=True)
    parser.add_argument("--idle-s", type=float, default=IDLE_S)
    parser.add_argument("--release-s", type=float, default=RELEASE_S)
    options = parser.parse_args(argv)
    listener = listen(options.socket)
    if os.fork():
        # The caller waits for this process alone. Clients can connect from now on.
        os._exit(0)
    os.setsid()
    os.chdir("/")
    host = WarmHost(
        options.socket,
        listener,
        inode=options.socket.stat().st_ino,
        home=options.home,
        idle_s=options.idle_s,
        release_s=options.release_s,
    )
    # Raised in `run`, so that the supervisors end in order.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        host.run()
    finally:
        host.close()


if __name__ == "__main__":
    main()
