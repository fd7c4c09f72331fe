"""The supervisor's process: requests in, progress and reports out, over one socket.

It has no torch and holds no tensor. It ends when its client is gone, and everything of ours ends
with it. Under a warm host it serves one client after another, each over a socket of its own.
"""

from __future__ import annotations

import argparse
import math
import os
import select
import socket
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path

from tilewright.errors import TilewrightError
from tilewright.evaluator.devices.devices import find_device
from tilewright.evaluator.pipeline.problem_lint import lint
from tilewright.evaluator.pipeline.run import evaluate
from tilewright.evaluator.processes.host import DeviceHost
from tilewright.records import EvalRequest
from tilewright.wire.frames import IDLE_S, Channel, ChannelClosed, Fields, Frame
from tilewright.wire.names import CLIENT_LEFT


class ClientGone(Exception):
    """The client no longer waits for the report."""


def main(argv: list[str] | None = None) -> None:
    """Serve one client until it closes its end, or the clients of a warm host until that ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--channel", type=int, help="socket of the only client")
    parser.add_argument("--clients", type=int, help="socket over which a warm host sends clients")
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--cores", default="", help="to use, numbers with commas between them")
    parser.add_argument("--release-s", type=float, default=math.inf)
    options = parser.parse_args(argv)
    if options.cores:
        os.sched_setaffinity(0, [int(core) for core in options.cores.split(",")])
    served = Served(options.home, list(os.sched_getaffinity(0)), options.release_s)
    try:
        if options.clients is None:
            _serve(served, options.channel)
        else:
            _serve_clients(served, options.clients)
    except (ChannelClosed, ClientGone):
        pass
    finally:
        for host in served.hosts.values():
            host.close()


@dataclass(frozen=True)
class Served:
    """The state between two requests. Lifetime: the process."""

    home: Path
    available: list[int]
    """Cores; a host narrows the affinity of the process."""
    release_s: float
    """Seconds without a request after which all that idles ends."""
    hosts: dict[str, DeviceHost] = field(default_factory=dict)
    """By device, each from the first request for it on."""

    def host_of(self, name: str) -> DeviceHost:
        device = find_device(name)
        if device.name not in self.hosts:
            self.hosts[device.name] = DeviceHost(self.home, device, available=self.available)
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
            if select.select([channel], [], [], None if wait_s == math.inf else wait_s)[0]:
                try:
                    return channel.receive(idle=self.answer_requests)
                except ChannelClosed:
                    return None
            self.answer_requests()
            if time.monotonic() >= release_at:
                release_at = math.inf
                for host in self.hosts.values():
                    host.release_idle()


def _serve_clients(served: Served, descriptor: int) -> None:
    """Serve the clients that a warm host sends, one after another.

    One that leaves in the middle of a request ends this process: the next client gets a fresh one.
    """
    with socket.socket(fileno=descriptor) as sock:
        warm_host = Channel(sock)
        while (frame := served.next_frame(warm_host)) is not None:
            (client,) = frame.fds
            _serve(served, client)
            warm_host.send(CLIENT_LEFT)


def _serve(served: Served, descriptor: int) -> None:
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
        if select.select([sock], [], [], 0)[0] and sock.recv(1, socket.MSG_PEEK) == b"":
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
            host.prefork(request.limits)


if __name__ == "__main__":
    main()
