"""The forkserver as a process: one thread, one fork per request, no leftovers."""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tilewright.wire.frames import Channel, ChannelClosed, Frame
from tilewright.wire.names import ISOLATION_LAYERS, PRELOAD

ROOT = Path(__file__).parents[2]
PLAIN: dict[str, Any] = {
    "read_only": ["/usr"],
    "writable_tmp_bytes": 1 << 20,
    "uid": 61000,
    "memory_bytes": 8 << 30,
    "file_bytes": 1 << 20,
    "processes": 16,
    "descriptors": 128,
    "core": None,
    "environment": dict(os.environ),
    "layers": [],
    "unheard_of": "is left out",
}


def started(parent: int, *roles: str) -> tuple[subprocess.Popen[str], Channel]:
    ours, theirs = socket.socketpair()
    command = [sys.executable, "-m", "tilewright.runner.forkserver"]
    command += ["--channel", str(theirs.fileno()), "--parent", str(parent)]
    for role in roles:
        command += ["--role", role]
    process = subprocess.Popen(
        command,
        pass_fds=(theirs.fileno(),),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    theirs.close()
    return process, Channel(ours)


@dataclass
class Forked:
    """A child of the forkserver, and the ends of its channel and pipes that we hold."""

    pid: int
    channel: Channel
    status_fd: int
    output_fd: int

    def ask(self, kind: str, **fields: Any) -> Frame:
        self.channel.send(kind, fields, b"body")
        return self.channel.receive(time.monotonic() + 20)

    def status(self) -> int:
        """Return the wait status once the child has ended."""
        data = os.read(self.status_fd, 4)
        (status,) = struct.unpack("<i", data)
        return int(status)

    def printed(self) -> str:
        """Return what it printed, once it has ended."""
        with open(self.output_fd, encoding="utf-8") as file:
            return file.read()

    def close(self) -> None:
        self.channel.close()
        os.close(self.status_fd)


class Server:
    """A forkserver under test."""

    def __init__(self) -> None:
        self.process, self.channel = started(os.getpid(), "echo=tests.processes.echo_role")
        self.up = self.channel.receive(time.monotonic() + 60)

    def fork(self, **changes: Any) -> Forked:
        ours, theirs = socket.socketpair()
        status, output = os.pipe(), os.pipe()
        fds = (theirs.fileno(), status[1], output[1])
        fields = {"role": "echo", "confinement": {**PLAIN, **changes}}
        self.channel.send("fork", fields, fds=fds)
        frame = self.channel.receive(time.monotonic() + 20)
        theirs.close()
        os.close(status[1])
        os.close(output[1])
        return Forked(frame.fields["pid"], Channel(ours), status[0], output[0])


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.channel.close()
    assert made.process.wait(20) == 0
    made.process.stderr.close()


def test_the_forkserver_has_one_thread(server):
    assert server.up.kind == "up"
    assert server.up.fields == {"threads": 1}


def test_it_imports_what_the_user_names(monkeypatch):
    # A thread of a preloaded module would be counted; a missing module is no error.
    monkeypatch.setenv(PRELOAD, "torch._dynamo,no_such_module,tests.processes.echo_role")
    process, channel = started(os.getpid(), "echo=tests.processes.echo_role")
    with process:
        up = channel.receive(time.monotonic() + 60)
        assert up.fields == {"threads": 1}
        mapped = Path(f"/proc/{process.pid}/maps").read_text()
        assert "libtorch" in mapped
        process.kill()
    channel.close()


def test_a_child_runs_its_role_and_reports_its_layers(server):
    child = server.fork()
    ready = child.channel.receive(time.monotonic() + 20)
    assert ready.kind == "ready"
    assert ready.fields["applied"] == dict.fromkeys(ISOLATION_LAYERS, "switched off")
    frame = child.ask("echo", number=3)
    assert (frame.fields["number"], frame.body) == (3, b"body")
    child.channel.send("end")

    assert child.status() == 0
    assert child.printed() == "echoed\n"
    child.close()


@pytest.mark.parametrize(
    ("fields", "signalled", "code"),
    [({"code": 3}, 0, 3), ({"signal": 9}, 9, 0), ({"signal": 11}, 11, 0), ({"code": 0}, 0, 0)],
)
def test_the_exit_status_of_a_child_is_reported(server, fields, signalled, code):
    child = server.fork()
    child.channel.receive(time.monotonic() + 20)
    child.channel.send("end", fields)
    status = child.status()
    child.printed()
    child.close()

    assert os.WIFSIGNALED(status) == bool(signalled)
    assert (os.WTERMSIG(status) if signalled else os.WEXITSTATUS(status)) == (signalled or code)


def test_printed_text_can_be_read_before_the_child_ends(server):
    child = server.fork()
    child.channel.receive(time.monotonic() + 20)
    child.ask("echo")
    assert os.read(child.output_fd, 100) == b"echoed\n"
    child.channel.send("end", {"signal": int(signal.SIGKILL)})
    child.status()
    child.printed()
    child.close()


def has_ended(pid: int) -> bool:
    """Tell whether a process is gone, or a zombie that nobody has collected."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2][1] == "Z"
    except OSError:
        return True


def test_children_that_ended_are_collected_at_the_next_fork(server):
    ended = []
    for _ in range(3):
        child = server.fork()
        ended.append(child.pid)
        child.channel.receive(time.monotonic() + 20)
        child.channel.send("end")
        child.status()
        child.printed()
        child.close()
    limit = time.monotonic() + 20
    while not all(map(has_ended, ended)):
        assert time.monotonic() < limit
        time.sleep(0.01)
    last = server.fork()
    last.channel.receive(time.monotonic() + 20)
    pid = server.process.pid
    below = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    last.channel.send("end")
    last.status()
    last.printed()
    last.close()

    assert below == [str(last.pid)]


def test_the_forkserver_does_not_start_without_its_supervisor():
    process, channel = started(1)
    with pytest.raises(ChannelClosed):
        channel.receive(time.monotonic() + 60)
    _, errors = process.communicate(timeout=20)
    channel.close()

    assert process.returncode == 1
    assert errors == "forkserver: the supervisor is gone already\n"
