"""A server with injected faults: kills, a full disk, a locked store, a cut network."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from benchmarks.process_tree import (
    command_of,
    descendants,
    is_forkserver,
    is_supervisor,
    parent_of,
)
from benchmarks.serve.ray_nodes import Nodes

__all__ = ["Fault", "Proxy", "World"]

Fault = Literal["server", "node", "actor", "supervisor", "judge", "disk full", "locked", "network"]
LASTS_S = 3.0
"""Duration of a fault of disk, lock or network, in seconds."""
START_S = 90.0
DISK_BYTES = 24 << 20


def free_port() -> int:
    """Return a port on which no process listens."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


class Proxy:
    """Passes bytes between clients and the server, unless it is cut. Lifetime: one world."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = int(self._listener.getsockname()[1])
        self._cut = False
        self._lock = threading.Lock()
        self._sockets: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                if self._cut:
                    raise OSError
                server = socket.create_connection(("127.0.0.1", self._to))
            except OSError:
                client.close()
                continue
            with self._lock:
                self._sockets |= {client, server}
            for one, other in ((client, server), (server, client)):
                threading.Thread(target=self._pass, args=(one, other), daemon=True).start()

    def _pass(self, one: socket.socket, other: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := one.recv(1 << 16):
                other.sendall(data)
        for sock in (one, other):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        with self._lock:
            self._sockets -= {one, other}

    def cut(self, seconds: float) -> None:
        """Break every connection, also in the middle of data, and refuse new ones."""
        self._cut = True
        with self._lock:
            for sock in self._sockets:
                with contextlib.suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)
        time.sleep(seconds)
        self._cut = False

    def close(self) -> None:
        """Stop listening."""
        self._listener.close()


class World:
    """A server process behind a proxy, embedded or on a cluster. Lifetime: one run of tasks."""

    def __init__(self, place: Path, home: Path | None, nodes: Nodes | None = None) -> None:
        self._nodes = nodes
        # A home with cached builds; the store is on a disk of its own.
        self._home = home or place
        self._home.mkdir(parents=True, exist_ok=True)
        place.mkdir(parents=True, exist_ok=True)
        self._log = place / "server.txt"
        self._disk = self._home / "serve"
        if self._disk.is_dir():
            self._disk.rename(place / "earlier")
        self._disk.mkdir()
        self._mounted = _mounted(self._disk)
        self.store = self._disk / "tasks.db"
        self._port = free_port()
        self._proxy = Proxy(self._port)
        self.url = f"http://127.0.0.1:{self._proxy.port}"
        self._server = self._started()

    def _started(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-P", "-m", "tilewright", "serve", "--port", str(self._port)]
        environment = {**os.environ, "TILEWRIGHT_HOME": str(self._home)}
        if self._nodes is not None:
            command += ["--executor", "ray", "--ray-address", self._nodes.address]
            environment |= self._nodes.variables
        with open(self._log, "ab") as log:
            process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        until = time.monotonic() + START_S
        while time.monotonic() < until and process.poll() is None:
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{self._port}/v1/health", timeout=5).read()
                return process
            time.sleep(0.05)
        process.kill()
        raise RuntimeError(f"the server did not start: {self._log.read_text()[-3000:]}")

    def inject(self, fault: Fault) -> float:
        """Inject a fault; return its time, or the time of its end if it lasts."""
        now = time.monotonic()
        if fault == "server":
            self.kill_for(0.0)
            return now
        if fault == "node":
            assert self._nodes is not None
            victim = self._nodes.nodes.pop(0)
            self._nodes.kill(victim)
            self._nodes.nodes.append(self._nodes.add())
            self._nodes.gone.append(victim)
            return now
        if fault in ("actor", "supervisor", "judge"):
            self._kill_one(fault)
            return now
        {"disk full": self._fill, "locked": self._lock_store, "network": self._cut}[fault]()
        return time.monotonic()

    def kill_for(self, seconds: float) -> None:
        """Kill the server, and start it again after `seconds`."""
        self._server.send_signal(signal.SIGKILL)
        self._server.wait()
        time.sleep(seconds)
        self._server = self._started()

    def _kill_one(self, fault: Fault) -> None:
        """Kill the first process of a kind that exists."""
        until = time.monotonic() + START_S
        while time.monotonic() < until:
            for pid in self._below():
                if self._is(fault, pid):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                        return
            time.sleep(0.01)
        raise RuntimeError(f"there is no {fault} to kill")

    def _below(self) -> list[int]:
        if self._nodes is None:
            return descendants(self._server.pid)
        return [pid for node in self._nodes.nodes for pid in descendants(node.pid)]

    @staticmethod
    def _is(fault: Fault, pid: int) -> bool:
        if fault == "actor":
            below = descendants(pid)
            return command_of(pid).startswith(b"ray::") and any(map(is_supervisor, below))
        if fault == "supervisor":
            return is_supervisor(pid)
        # The judge's init is the oldest child of a forkserver.
        with contextlib.suppress(OSError):
            return is_forkserver(parent_of(pid))
        return False

    def _fill(self) -> None:
        """Fill the disk, and forbid writes to pages that the store already has.

        A full disk alone does not stop SQLite, which overwrites pages of its log.
        """
        before = resource.prlimit(self._server.pid, resource.RLIMIT_FSIZE)
        until = time.monotonic() + LASTS_S
        ballast = self._disk / "ballast"
        with open(ballast, "wb", buffering=0) as file:
            with contextlib.suppress(OSError):
                while self._mounted:
                    file.write(bytes(4096))
            resource.prlimit(self._server.pid, resource.RLIMIT_FSIZE, (0, before[1]))
            time.sleep(max(until - time.monotonic(), 0.0))
        resource.prlimit(self._server.pid, resource.RLIMIT_FSIZE, before)
        ballast.unlink()

    def _lock_store(self) -> None:
        with contextlib.closing(sqlite3.connect(self.store, timeout=30)) as other:
            other.execute("begin exclusive")
            time.sleep(LASTS_S)
            other.rollback()

    def _cut(self) -> None:
        self._proxy.cut(LASTS_S)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End the server and unmount its disk."""
        self._server.send_signal(signal.SIGTERM)
        try:
            self._server.wait(60)
        except subprocess.TimeoutExpired:
            self._server.kill()
            self._server.wait()
        self._proxy.close()
        if self._mounted:
            subprocess.run(["umount", "--lazy", str(self._disk)], check=False)


def _mounted(folder: Path) -> bool:
    """Mount a small file system on `folder`; return whether this user may."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(folder)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0
