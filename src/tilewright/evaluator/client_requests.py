"""The requests of clients, in a supervisor: progress and reports go back over the same socket."""

from __future__ import annotations

import math
import os
import socket
import time
import traceback
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tilewright.errors import TilewrightError
from tilewright.evaluator.devices.devices import find_device
from tilewright.evaluator.pipeline.problem_lint import lint
from tilewright.evaluator.pipeline.run import evaluate
from tilewright.evaluator.processes.forkserver_client import Forkserver
from tilewright.evaluator.processes.host import DeviceHost
from tilewright.records import EvalRequest
from tilewright.wire.frames import IDLE_S, Channel, ChannelClosed, Fields, Frame
from tilewright.wire.names import CLIENT_LEFT
from tilewright.wire.readiness import is_readable


class ClientGone(Exception):
    """The client no longer waits for the report."""


@dataclass(frozen=True)
class Served:
    """The state between two requests. Lifetime: the process."""

    home: Path
    available: list[int]
    """Cores; a host narrows the affinity of the process."""
    release_s: float
    """Seconds without a request after which all that idles ends."""
    begun: list[Forkserver] = field(default_factory=list)
    """Forkservers that started before the first request. The host of the first device uses one."""
    hosts: dict[str, DeviceHost] = field(default_factory=dict)
    """By device, each from the first request for it on."""

    def close(self) -> None:
        """End every process."""
        for host in self.hosts.values():
            host.close()
        for forkserver in self.begun:
            forkserver.close()

    def host_of(self, name: str) -> DeviceHost:
        device = find_device(name)
        if device.name not in self.hosts:
            begun = self.begun.pop() if self.begun else None
            self.hosts[device.name] = DeviceHost(
                self.home, device, available=self.available, begun=begun
            )
        return self.hosts[device.name]

    def answer_requests(self) -> None:
        """Release a device's memory if another supervisor needs it, and nothing is timed here."""
        if not any(host.leased and not host.makes_room for host in self.hosts.values()):
            for host in self.hosts.values():
                host.answer_request()

    def next_frame(self, channel: Channel) -> Frame | None:
        """Return the next frame; `None`: the peer has left.

        Meanwhile release what others ask for, and what has idled for long.
        """
        # A supervisor that nobody asks for memory sleeps: nothing runs beside what others time.
        poll_s = IDLE_S if any(host.ledger for host in self.hosts.values()) else math.inf
        release_at = time.monotonic() + self.release_s
        while True:
            wait_s = min(poll_s, max(release_at - time.monotonic(), 0.0))
            if is_readable(channel, wait_s):
                try:
                    return channel.receive(idle=self.answer_requests)
                except ChannelClosed:
                    return None
            self.answer_requests()
            if time.monotonic() >= release_at:
                release_at = math.inf
                for host in self.hosts.values():
                    host.release_idle()


def serve_clients(served: Served, descriptor: int) -> None:
    """Serve the clients that a warm host sends over a socket, one after another.

    One that leaves in the middle of a request ends this process: the next client gets a fresh one.
    """
    with socket.socket(fileno=descriptor) as sock:
        warm_host = Channel(sock)
        while (frame := served.next_frame(warm_host)) is not None:
            (client,) = frame.fds
            serve(served, client)
            warm_host.send(CLIENT_LEFT)


def serve(served: Served, descriptor: int) -> None:
    """Answer the requests of a client, until it leaves."""
    with socket.socket(fileno=descriptor) as sock:
        _answer(served, sock)


def _answer(served: Served, sock: socket.socket) -> None:
    """Answer each request on the host of its device."""
    channel = Channel(sock)
    channel.send("up", {"pid": os.getpid()})

    def emit(event: str, fields: Fields) -> None:
        channel.send("event", {"event": event, **fields})

    def watch() -> None:
        """Raise if the client has gone."""
        served.answer_requests()
        if is_readable(sock) and sock.recv(1, socket.MSG_PEEK) == b"":
            raise ClientGone

    while (frame := served.next_frame(channel)) is not None:
        try:
            request = EvalRequest.from_json(frame.body)
            names = frame.fields.get("checks")
            checks = None if names is None else tuple(names)
            host = served.host_of(request.device)
            if frame.kind == "lint":
                channel.send("health", {}, lint(host, request, emit, watch).to_json().encode())
                continue
            report = evaluate(host, request, emit, watch, checks=checks)
        except TilewrightError as error:
            channel.send("failed", {"type": type(error).__name__, "message": str(error)[:4000]})
        except ClientGone:
            raise
        except Exception as error:
            text = "".join(traceback.format_exception(error))[-8000:]
            channel.send("broken", {"message": f"a bug: {text}"})
            raise
        else:
            channel.send("report", {}, report.to_json().encode())
            # Where that fails, the next evaluation starts its own processes.
            with suppress(TilewrightError, OSError):
                host.prefork(request.limits)
