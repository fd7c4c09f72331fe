"""The supervisor's process: requests in, progress and reports out, over one socket.

It has no torch and holds no tensor. It ends when its client is gone, and everything of ours ends
with it.
"""

from __future__ import annotations

import argparse
import os
import select
import socket
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tilewright.errors import TilewrightError
from tilewright.evaluator.devices.devices import find_device
from tilewright.evaluator.pipeline.problem_lint import lint
from tilewright.evaluator.pipeline.run import evaluate
from tilewright.evaluator.processes.host import DeviceHost
from tilewright.records import EvalRequest
from tilewright.wire.frames import Channel, ChannelClosed, Fields


class ClientGone(Exception):
    """The client no longer waits for the report."""


def main(argv: list[str] | None = None) -> None:
    """Serve one client until it closes its end."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--channel", type=int, required=True)
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--cores", default="", help="to use, numbers with commas between them")
    options = parser.parse_args(argv)
    if options.cores:
        os.sched_setaffinity(0, [int(core) for core in options.cores.split(",")])
    sock = socket.socket(fileno=options.channel)
    hosts: dict[str, DeviceHost] = {}
    try:
        _serve(hosts, options.home, sock)
    except (ChannelClosed, ClientGone):
        pass
    finally:
        for host in hosts.values():
            host.close()
        sock.close()


def _host_of(
    name: str, hosts: dict[str, DeviceHost], home: Path, available: list[int]
) -> DeviceHost:
    device = find_device(name)
    if device.name not in hosts:
        hosts[device.name] = DeviceHost(home, device, available=available)
    return hosts[device.name]


def _answer_requests(hosts: dict[str, DeviceHost]) -> None:
    """Release a device's memory if another supervisor needs it, and nothing is timed here."""
    if not any(host.leased and not host.makes_room for host in hosts.values()):
        for host in hosts.values():
            host.answer_request()


def _idle(hosts: dict[str, DeviceHost]) -> Callable[[], None] | None:
    """Return what a supervisor does while it has no request; `None`: nobody asks it for memory."""
    shared = any(host.ledger is not None for host in hosts.values())
    return partial(_answer_requests, hosts) if shared else None


def _serve(hosts: dict[str, DeviceHost], home: Path, sock: socket.socket) -> None:
    """Answer each request on the host of its device, which exists from its first use on."""
    channel, available = Channel(sock), list(os.sched_getaffinity(0))
    channel.send("up", {"pid": os.getpid()})

    def emit(event: str, fields: Fields) -> None:
        channel.send("event", {"event": event, **fields})

    def watch() -> None:
        """Raise if the client has gone."""
        _answer_requests(hosts)
        if select.select([sock], [], [], 0)[0] and sock.recv(1, socket.MSG_PEEK) == b"":
            raise ClientGone

    while True:
        frame = channel.receive(idle=_idle(hosts))
        try:
            request = EvalRequest.from_json(frame.body)
            names = frame.fields.get("checks")
            checks = None if names is None else tuple(names)
            host = _host_of(request.device, hosts, home, available)
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
