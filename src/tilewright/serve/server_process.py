"""The server as a process: one at a time on a folder, patient with slow clients, ended in order."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from tilewright.errors import ConfigError
from tilewright.records.file_lock import lock_when_free
from tilewright.serve.service import Service

__all__ = ["bind", "hold", "listen"]

POLL_INTERVAL_S = 0.2
BACKLOG = 2048
FINISH_S = 10
"""What answers under way may take once everything is judged, in seconds."""


@contextlib.contextmanager
def hold(folder: Path, waits: Callable[[str], None]) -> Iterator[None]:
    """Keep a folder of tasks to one server; another begins when that one has gone.

    The lock is the process's: it goes with it, however that ends.

    Raises:
        ConfigError: the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # What clients submit, and the hashes of their tokens, are nobody else's on this machine.
        folder.chmod(0o700)
        lock = open(folder / "server.lock", "a", encoding="ascii")  # noqa: SIM115 - held below
    except OSError as error:
        raise ConfigError(f"{folder}: cannot be written: {error.strerror}") from error
    with lock:
        line = f"another server uses {folder}; this server starts when that one has ended"
        lock_when_free(lock, threading.Event(), POLL_INTERVAL_S, lambda: waits(line))
        yield


def bind(host: str, port: int) -> socket.socket:
    """Take an address, before anything is judged for who cannot ask for it.

    Raises:
        ConfigError: it is taken, or none of this machine's.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except (OSError, OverflowError) as error:
        raise ConfigError(f"--host {host} --port {port}: {error}") from error


def listen(app: FastAPI, service: Service, bound: socket.socket, kill: Callable[[], None]) -> None:
    """Serve on a socket until a signal; then finish what is judged, or `kill` it when it is late.

    A first signal drains: what is asked for anew is refused with 503, what can be read still is.
    A second one ends at once; what was being judged is judged again by the next server.
    """
    limits = service.settings.serve

    class Patient(_Patient):
        patience_s = limits.header_timeout_s

    settings = uvicorn.Config(
        app,
        log_level="warning",
        http=Patient,
        ws="none",
        limit_concurrency=limits.connections,
        timeout_graceful_shutdown=FINISH_S,
        server_header=False,
        # Who stands before us may say of whom it speaks, and anybody may stand there.
        proxy_headers=False,
    )
    server = _Draining(settings)
    server.prepare(service, kill)
    server.run(sockets=[bound])


class _Draining(uvicorn.Server):
    """Drains before it ends. Lifetime: the process."""

    def prepare(self, service: Service, kill: Callable[[], None]) -> None:
        """Say what is to be drained, and how work is ended that takes too long."""
        self._service = service
        self._kill = kill
        self._thread: threading.Thread | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - uvicorn's
        """Drain at the first signal, end at the second."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._drain, daemon=True)
            self._thread.start()
        else:
            self._kill()
            self.should_exit = self.force_exit = True

    def _drain(self) -> None:
        limit = threading.Timer(self._service.settings.serve.shutdown_grace_s, self._kill)
        limit.daemon = True
        limit.start()
        self._service.drain()
        limit.cancel()
        self.should_exit = True


class _Patient(H11Protocol):
    """A connection that is closed when a request does not arrive. Lifetime: the connection.

    Uvicorn waits for ever for the first byte, and for the end of the headers.
    """

    patience_s = 10.0
    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:  # noqa: ANN401 - asyncio's
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._late = self.loop.call_later(self.patience_s, self._give_up)

    def data_received(self, data: bytes) -> None:
        """Take what came; wait for the rest of a request that has begun."""
        super().data_received(data)
        if self._under_way():
            self._forget()
        elif self._late is None:
            self._late = self.loop.call_later(self.patience_s, self._give_up)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing more."""
        self._forget()
        super().connection_lost(exc)

    def _under_way(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _forget(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _give_up(self) -> None:
        self._late = None
        if not self._under_way() and not self.transport.is_closing():
            self.transport.close()
