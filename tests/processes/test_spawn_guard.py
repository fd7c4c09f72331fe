"""A timed runner is one process: it starts none, and its earlier ones have ended."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.processes.evaluations import RIGHT, bench, request
from tilewright.evaluator.processes.process_tree import ProcessTree
from tilewright.evaluator.processes.spawn_guard import SpawnGuard
from tilewright.records import Limits
from tilewright.wire.names import ISOLATION_LAYERS, IsolationLayer

__all__ = ["bench"]

GUARD = IsolationLayer.PROCESS_CREATION_GUARD

WORKER = """
import array, ctypes, os, signal, socket, subprocess, sys, threading, time
from tilewright.runner.sandbox import seccomp
ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)
sock = socket.socket(fileno=int(sys.argv[1]))
idle = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
try:
    listener = seccomp.listen()
except OSError as error:
    sock.sendall(b"none")
    sys.exit()
socket.send_fds(sock, [b"here"], [listener])
os.close(listener)
def fork():
    try:
        pid = os.fork()
    except OSError as error:
        return str(error.errno)
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return "made"
def spawn():
    try:
        subprocess.run(["true"], check=True)
    except OSError as error:
        return str(error.errno)
    return "made"
def thread():
    made = threading.Thread(target=lambda: None)
    made.start()
    made.join()
    return "made"
KNOWN = {"fork": fork, "spawn": spawn, "thread": thread}
while True:
    sock.sendall(KNOWN[sock.recv(16).decode()]().encode())
"""


class Payload:
    """A process below an init process, as a runner is. Lifetime: until `close`."""

    def __init__(self) -> None:
        self._sock, theirs = socket.socketpair()
        code = "import subprocess, sys; subprocess.run([sys.executable, '-c', *sys.argv[1:]], "
        code += "close_fds=False)"
        command = [sys.executable, "-c", code, WORKER, str(theirs.fileno())]
        self._init = subprocess.Popen(command, pass_fds=(theirs.fileno(),))
        theirs.close()
        word, fds, _, _ = socket.recv_fds(self._sock, 4, 1)
        self.listener = fds[0] if word == b"here" else None
        self.tree = ProcessTree(self._init.pid)
        self.tree.refresh()

    def ask(self, what: str) -> str:
        self._sock.sendall(what.encode())
        return self._sock.recv(16).decode()

    def close(self) -> None:
        self.tree.refresh()
        for pid in self.tree.pids:
            os.kill(pid, 9)
        self._init.wait()
        self.tree.close()
        self._sock.close()


@pytest.fixture
def payload() -> Iterator[Payload]:
    made = Payload()
    yield made
    made.close()


@pytest.fixture
def spawn_guard(payload: Payload) -> Iterator[SpawnGuard]:
    if payload.listener is None:
        pytest.skip("this kernel has no seccomp listener")
    made = SpawnGuard(payload.listener)
    yield made
    made.close()


def test_a_closed_guard_refuses_new_processes_and_allows_threads(payload, spawn_guard):
    assert [payload.ask(what) for what in ("fork", "spawn", "thread")] == ["made"] * 3
    spawn_guard.closed = True
    assert [payload.ask(what) for what in ("fork", "spawn", "thread")] == ["1", "1", "made"]
    spawn_guard.closed = False
    assert payload.ask("fork") == "made"


def test_forbidding_processes_leaves_only_the_payload(payload, spawn_guard):
    others = payload.tree.pids[1:]
    assert len(others) == 1
    spawn_guard.closed = True
    payload.tree.forbid_processes()

    assert payload.tree.single_process
    assert len(payload.tree.pids) == 1
    state = Path(f"/proc/{others[0]}/stat").read_text(encoding="ascii").rpartition(") ")[2][0]
    assert state in "ZX"
    assert payload.ask("thread") == "made"
    before = payload.tree.cpu_s()
    payload.tree.freeze()
    time.sleep(0.02)
    assert payload.tree.cpu_s() >= before
    payload.tree.resume()
    assert payload.ask("thread") == "made"


def test_only_timed_runners_have_the_process_creation_guard(bench):
    asked = {role: bench.host.spawn(role, Limits(), ()) for role in ("runner", "builder")}
    try:
        for child in asked.values():
            child.wait_ready()
        assert asked["runner"].applied["process_creation_guard"] != "switched off"
        if asked["runner"].applied["process_creation_guard"]:
            pytest.skip(asked["runner"].applied["process_creation_guard"])
        assert asked["runner"].spawn_guard is not None
        assert asked["builder"].applied["process_creation_guard"] == "switched off"
        assert asked["builder"].spawn_guard is None
    finally:
        for child in asked.values():
            child.kill()


def test_a_machine_without_seccomp_notification_reports_the_missing_guard(bench, monkeypatch):
    monkeypatch.setattr(
        bench.host,
        "layers",
        tuple(name for name in ISOLATION_LAYERS if name != "process_creation_guard"),
    )
    bench.host.wait_closed()
    asked = request(RIGHT, require_isolation=(GUARD,))
    report = bench.judge(asked)
    assert report.outcome.verdict == "unjudged"
    assert report.outcome.message == "process_creation_guard: switched off"
    bench.host.wait_closed()
