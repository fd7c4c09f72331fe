"""A Ray cluster of several nodes on this machine, for bars and tests that kill its processes."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from benchmarks.process_tree import command_of, descendants
from tilewright.executors.local import MIN_CORES_PER_DEVICE

START_S = 60.0
STORE_BYTES = 80 << 20
CLI = [sys.executable, "-c", "from ray.scripts.scripts import main; main()", "start", "--block"]
LEAN = ["--disable-usage-stats", f"--object-store-memory={STORE_BYTES}"]
HEAD = ["--head", "--include-dashboard=false"]


class Nodes:
    """The nodes of a cluster, the head first. Lifetime: the `with` block.

    The head offers no CPU, so each device is on a node that a test may kill.
    """

    def __init__(self, home: Path, count: int = 2) -> None:
        with socket.socket() as sock:
            sock.bind(("127.0.0.1", 0))
            port = int(sock.getsockname()[1])
        address = own_address()
        self.address = f"{address}:{port}"
        # Ray's sockets are in this folder, and the path of a socket has at most 107 bytes.
        self._folder = tempfile.TemporaryDirectory(prefix="rn", ignore_cleanup_errors=True)
        self.place = self._folder.name
        """The folder of Ray's sockets and logs."""
        self.variables = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
        """Environment variables that a process needs before it imports Ray, to connect."""
        self._environment = {**os.environ, **self.variables, "TILEWRIGHT_HOME": str(home)}
        self.folder = home
        home.mkdir(parents=True, exist_ok=True)
        args = [*HEAD, f"--port={port}", "--num-cpus=0", f"--temp-dir={self._folder.name}"]
        self.head = self._start([*args, f"--node-ip-address={address}"])
        self._until_up(port, address)
        self.nodes = [self.add() for _ in range(count)]
        self.gone: list[subprocess.Popen[bytes]] = []
        """Killed nodes."""

    def add(self) -> subprocess.Popen[bytes]:
        """Start one more node with `ray start`."""
        return self._start([f"--address={self.address}", f"--num-cpus={MIN_CORES_PER_DEVICE}"])

    def _start(self, args: list[str]) -> subprocess.Popen[bytes]:
        with open(self.folder / "ray.txt", "ab") as log:
            return subprocess.Popen(
                [*CLI, *LEAN, *args],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                start_new_session=True,
            )

    def _until_up(self, port: int, address: str) -> None:
        until = time.monotonic() + START_S
        while time.monotonic() < until:
            with contextlib.suppress(OSError), socket.create_connection((address, port), 1.0):
                return
            if self.head.poll() is not None:
                break
            time.sleep(0.1)
        raise RuntimeError(f"ray did not start: {(self.folder / 'ray.txt').read_text()[-2000:]}")

    def kill(self, node: subprocess.Popen[bytes]) -> None:
        """Kill a node's raylet and with it all of its workers, like a failed machine."""
        for pid in descendants(node.pid):
            if b"raylet/raylet" in command_of(pid).split(b"\0")[0]:
                os.kill(pid, signal.SIGKILL)

    def stop(self) -> None:
        """Kill all processes of the cluster."""
        for node in [*self.nodes, *self.gone, self.head]:
            for pid in [*descendants(node.pid), node.pid]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            node.wait()
        self._folder.cleanup()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Kill all processes of the cluster."""
        self.stop()


def own_address() -> str:
    """Return the address of this machine's default route, as Ray finds it, without sending data."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.connect(("8.8.8.8", 53))
        except OSError:
            return "127.0.0.1"
        return str(sock.getsockname()[0])
