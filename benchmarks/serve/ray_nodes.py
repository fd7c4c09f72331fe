"""A Ray cluster of several nodes on this machine, started by `ray start`, for tests that kill."""

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
    """The nodes, the head first. Lifetime: while it is entered.

    The head has no CPU to lease, so that each device is on a node that can be killed.
    """

    def __init__(self, home: Path, count: int = 2) -> None:
        with socket.socket() as sock:
            sock.bind(("127.0.0.1", 0))
            port = int(sock.getsockname()[1])
        address = own_address()
        self.address = f"{address}:{port}"
        # Sockets are below it, and their paths may be no longer than 107 bytes.
        self._folder = tempfile.TemporaryDirectory(prefix="rn", ignore_cleanup_errors=True)
        self.place = self._folder.name
        """Where Ray keeps its sockets and logs."""
        self.variables = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
        """What whoever connects needs too, before it imports Ray."""
        self._environment = {**os.environ, **self.variables, "TILEWRIGHT_HOME": str(home)}
        self.folder = home
        home.mkdir(parents=True, exist_ok=True)
        words = [*HEAD, f"--port={port}", "--num-cpus=0", f"--temp-dir={self._folder.name}"]
        self.head = self._start([*words, f"--node-ip-address={address}"])
        self._until_up(port, address)
        self.nodes = [self.add() for _ in range(count)]
        self.gone: list[subprocess.Popen[bytes]] = []
        """Those that were killed."""

    def add(self) -> subprocess.Popen[bytes]:
        """Start one more node, as its administrator would."""
        return self._start([f"--address={self.address}", f"--num-cpus={MIN_CORES_PER_DEVICE}"])

    def _start(self, words: list[str]) -> subprocess.Popen[bytes]:
        with open(self.folder / "ray.txt", "ab") as log:
            return subprocess.Popen(
                [*CLI, *LEAN, *words],
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
        """Kill a node's raylet, and with it whatever it leased: as if the machine were gone."""
        for pid in descendants(node.pid):
            if b"raylet/raylet" in command_of(pid).split(b"\0")[0]:
                os.kill(pid, signal.SIGKILL)

    def stop(self) -> None:
        """Kill everything that was started here."""
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
        """Kill everything."""
        self.stop()


def own_address() -> str:
    """Return the address by which this machine leaves, as Ray finds it; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.connect(("8.8.8.8", 53))
        except OSError:
            return "127.0.0.1"
        return str(sock.getsockname()[0])
