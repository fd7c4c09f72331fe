"""The server process: one for each folder, with limits for slow clients and an orderly end."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from tilewright.errors import ConfigError, reason_of, writing
from tilewright.records import file_lock
from tilewright.serve.service import Service

BACKLOG = 2048
FINISH_S = 10
"""Seconds that open answers may take after the last evaluation of a draining server."""


@contextlib.contextmanager
def hold(folder: Path, waits: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock of a folder of tasks; a second server waits until the first has ended.

    The kernel frees the lock when the process ends, for any reason.
    """
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        # Other users of this machine may not read submissions and hashes of tokens.
        folder.chmod(0o700)
        lock = open(folder / "server.lock", "a", encoding="ascii")  # noqa: SIM115 - held below
    with lock:
        if not file_lock.try_lock(lock):
            waits(f"another server uses {folder}; this server starts when that one has ended")
            file_lock.lock(lock)
        yield


def bind(host: str, port: int) -> socket.socket:
    """Bind an address; the server does so before it starts any evaluation."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except (OSError, OverflowError) as error:
        in_use = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
        reason = "another program uses this port; choose another, or 0 for any free one"
        if not in_use:
            reason = reason_of(error) if isinstance(error, OSError) else str(error)
        raise ConfigError(f"--host {host} --port {port}: {reason}") from error


def listen(app: FastAPI, service: Service, bound: socket.socket, kill: Callable[[], None]) -> None:
    """Serve on a socket until a signal.

    The first signal drains: the server refuses submissions, answers reads, and finishes running
    evaluations; after `serve.shutdown_grace_s` it calls `kill`. A second signal ends it at once.
    """
    limits = service.settings.serve

    class Protocol(_HeaderTimeout):
        timeout_s = limits.header_timeout_s

    settings = uvicorn.Config(
        app,
        log_level="warning",
        http=Protocol,
        ws="none",
        limit_concurrency=limits.connections,
        timeout_graceful_shutdown=FINISH_S,
        server_header=False,
        # Any client can send the headers with which a proxy names its client.
        proxy_headers=False,
    )
    _Draining(settings, service, kill).run(sockets=[bound])


class _Draining(uvicorn.Server):
    """A server that drains before it ends. Lifetime: the process."""

    def __init__(
        self, settings: uvicorn.Config, service: Service, kill: Callable[[], None]
    ) -> None:
        super().__init__(settings)
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


class _HeaderTimeout(H11Protocol):
    """A connection that closes if a request does not arrive; uvicorn itself waits without limit."""

    timeout_s: float
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:  # noqa: ANN401 - asyncio's
        super().connection_made(transport)
        self._start_timer()

    def data_received(self, data: bytes) -> None:
        """Stop the timeout at a complete request, and start it at the first part of one."""
        super().data_received(data)
        if self._has_request():
            self._stop_timer()
        else:
            self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def _has_request(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _start_timer(self) -> None:
        self._timer = self._timer or self.loop.call_later(self.timeout_s, self._give_up)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None

    def _give_up(self) -> None:
        self._timer = None
        if not self._has_request() and not self.transport.is_closing():
            self.transport.close()
