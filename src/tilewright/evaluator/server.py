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
from pathlib import Path
from typing import Any

from tilewright.errors import TilewrightError
from tilewright.evaluator.devices.devices import find_device
from tilewright.evaluator.pipeline.problem_lint import lint
from tilewright.evaluator.pipeline.run import evaluate
from tilewright.evaluator.processes.host import DeviceHost
from tilewright.records import EvalRequest
from tilewright.wire.frames import Channel, ChannelClosed

__all__ = ["main"]


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
    hosts = HostRegistry(options.home)
    try:
        _serve(hosts, sock)
    except (ChannelClosed, ClientGone):
        pass
    finally:
        hosts.close()
        sock.close()


class HostRegistry:
    """One host a device, each from its first use on. Lifetime: the supervisor process."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._available = list(os.sched_getaffinity(0))
        self._hosts: dict[str, DeviceHost] = {}

    def of(self, name: str) -> DeviceHost:
        """Return the host of a device.

        Raises:
            InfrastructureError: it is not on this machine.
        """
        device = find_device(name)
        if device.name not in self._hosts:
            self._hosts[device.name] = DeviceHost(self._home, device, available=self._available)
        return self._hosts[device.name]

    def close(self) -> None:
        """End every host's processes."""
        for host in self._hosts.values():
            host.close()


def _serve(hosts: HostRegistry, sock: socket.socket) -> None:
    channel = Channel(sock)
    channel.send("up", {"pid": os.getpid()})

    def emit(event: str, fields: dict[str, Any]) -> None:
        channel.send("event", {"event": event, **fields})

    def watch() -> None:
        """Notice a client that has gone, in the middle of whatever is being waited for."""
        if select.select([sock], [], [], 0)[0] and sock.recv(1, socket.MSG_PEEK) == b"":
            raise ClientGone

    while True:
        frame = channel.receive()
        try:
            request = EvalRequest.from_json(frame.body)
            checks = frame.fields.get("checks")
            host = hosts.of(request.device)
            if frame.kind == "lint":
                channel.send("health", {}, lint(host, request, emit, watch).to_json().encode())
                continue
            report = evaluate(
                host, request, emit, watch, checks=None if checks is None else tuple(checks)
            )
        except TilewrightError as error:
            fields = {"type": type(error).__name__, "message": str(error)[:4000]}
            channel.send("failed", fields)
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
