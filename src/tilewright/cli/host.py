"""`tilewright host`: list and stop the warm hosts of this user."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from tilewright.cli.options import JSON
from tilewright.cli.output import print_line
from tilewright.cli.render import show_result, table
from tilewright.cli.usage_errors import CommandGroup
from tilewright.errors import ConfigError, InfrastructureError
from tilewright.executors.host_connection import running_hosts, stop_host
from tilewright.executors.host_messages import HostStatus


@click.group("host", cls=CommandGroup)
def command() -> None:
    """List or stop the warm hosts of this user.

    A warm host keeps supervisors up in the background, so that an evaluation begins at once. It
    ends after ten minutes without a client.
    """


@command.command("status")
@JSON
def status(as_json: bool) -> int:
    """List the warm hosts, with their clients and the seconds until they end."""
    made = table("pid", "version", "clients", "supervisors", "ends in", "home", right=(0, 2, 3, 4))
    found = [state for _, state in _hosts()]
    for state in found:
        ends_in = "-" if state.ends_in_s is None else f"{state.ends_in_s:.0f} s"
        made.add_row(
            str(state.pid),
            state.version,
            str(state.clients),
            str(state.supervisors),
            ends_in,
            state.home,
        )
    show_result(as_json, [asdict(state) for state in found], made)
    print_line("next: tilewright host stop" if found else "no warm host is up")
    return 0


@command.command("stop")
@click.argument("pids", nargs=-1, type=int, metavar="[PID]...")
def stop(pids: tuple[int, ...]) -> int:
    """Stop the warm hosts PID, or all. An evaluation under way begins again without one."""
    stopped, hosts = 0, _hosts()
    if unknown := set(pids).difference(state.pid for _, state in hosts):
        raise ConfigError(f"no warm host has the pid {min(unknown)}; tilewright host status")
    for path, state in hosts:
        if pids and state.pid not in pids:
            continue
        if not stop_host(path):
            message = f"warm host {state.pid}: it did not end; end it with: kill -9 {state.pid}"
            raise InfrastructureError(message)
        stopped += 1
    print_line(f"warm hosts stopped: {stopped}")
    return 0


def _hosts() -> list[tuple[Path, HostStatus]]:
    try:
        return list(running_hosts())
    except OSError as error:
        raise InfrastructureError(f"warm hosts: {error}") from error
