"""`tilewright serve`: judge for other programs, over HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from tilewright.cli.common import (
    device_flags,
    load_settings,
    one_model,
    ready_to_judge,
    settings_options,
    usable_home,
)
from tilewright.cli.lines import say
from tilewright.config import LOCAL, RAY, Config
from tilewright.errors import ConfigError
from tilewright.executors.choose import Executor, is_cluster, open_cluster
from tilewright.executors.cluster import RayExecutor
from tilewright.executors.local import LocalExecutor
from tilewright.records import EvalReport, EvalRequest
from tilewright.serve.access import (
    SCOPES,
    Tokens,
    is_loopback,
    listed_tokens,
    make_token,
    revoke_token,
)

__all__ = ["command"]

Evaluate = Callable[[EvalRequest, Callable[[str, dict[str, Any]], None]], EvalReport]


@click.command("serve")
@click.option("--host", default="127.0.0.1", show_default=True, help="Where it listens.")
@click.option("--port", type=click.IntRange(0, 65535), default=8477, show_default=True)
@click.option(
    "--workers",
    type=click.IntRange(1, 64),
    default=2,
    show_default=True,
    help="How many are judged at once; one at a time is on a device.",
)
@click.option(
    "--executor",
    "where",
    type=click.Choice((LOCAL, RAY)),
    help="Judge on this machine, or on the devices of a Ray cluster. (executor)",
)
@click.option(
    "--address",
    metavar="HOST:PORT",
    help="Of that cluster, as `ray start --head` prints it; without it one is started here.",
)
@click.option("--device", metavar="NAME", help="cpu, cuda, cuda:N, or several. (eval.device)")
@click.option(
    "--protocol",
    type=click.Choice(["strict", "kernelgym"]),
    help="By whose rules KernelGYM's door answers. (serve.protocol)",
)
@click.option("--make-token", "name", metavar="CLIENT", help="Print a new token, and end.")
@click.option("--revoke-token", "revoked", metavar="CLIENT", help="Forget its token, and end.")
@click.option("--list-tokens", "listed", is_flag=True, help="Print clients and scopes, and end.")
@click.option("--json", "as_json", is_flag=True, help="With --list-tokens: as JSON.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice(SCOPES),
    help="What that token may do; default: submit and read. Repeatable.",
)
@settings_options
def command(**given: Any) -> int:  # noqa: ANN401 - the options above
    """Judge what other programs submit. What is accepted is on the disk, and is judged.

    On the loopback address everybody on this machine may ask; anywhere else a token is wanted,
    made by --make-token, sent as Bearer or as the password of http://x:TOKEN@host:port. A signal
    ends it in order: it finishes what it is judging; what waits is kept for the next server.
    """
    flags = {
        **device_flags(given["device"]),
        "executor": ("--executor", _executor_of(given["where"], given["address"])),
        "serve.protocol": ("--protocol", given["protocol"]),
    }
    settings = load_settings(given["file"], given["overrides"], flags)
    home = usable_home(settings) / "serve"
    if given["name"] is not None or given["revoked"] is not None or given["listed"]:
        _tokens(home, given)
        return 0
    ready_to_judge(settings)
    if settings.executor != LOCAL and not is_cluster(settings.executor):
        raise ConfigError("executor: a server judges itself, or on a cluster; name no other server")
    host = given["host"]
    tokens = None if is_loopback(host) else Tokens(home)
    if tokens is not None and not tokens:
        raise ConfigError(
            f"--host {host}: others reach that address, so a token is wanted, and there is none: "
            "tilewright serve --make-token CLIENT"
        )
    _serve(settings, home, tokens, given)
    return 0


def _serve(settings: Config, home: Path, tokens: Tokens | None, given: dict[str, Any]) -> None:
    """Serve until a signal."""
    host, port = given["host"], given["port"]
    try:
        from tilewright.serve.app import Service, create_app
        from tilewright.serve.kernelgym import add_kernelgym
        from tilewright.serve.running import bind, hold, listen
    except ImportError as error:
        raise ConfigError(
            f"the server needs {error.name}: pip install 'tilewright[serve]'"
        ) from error
    with hold(home, say), bind(host, port) as bound:
        opened = _opened(settings, given["workers"])
        service = Service(
            settings, opened.model, opened.evaluate, home, opened.room, opened.workers
        )
        say(f"judging on {opened.model}; tasks are kept in {home}; http://{host}:{port}/docs")
        app = create_app(service, tokens)
        add_kernelgym(app)
        try:
            listen(app, service, bound, opened.executor.kill)
        finally:
            opened.executor.close()


@dataclass(frozen=True)
class Opened:
    """Where the server judges."""

    executor: Executor
    evaluate: Evaluate
    model: str
    room: int | Callable[[], int]
    """How many tasks may be under way."""
    workers: int | Callable[[], int]
    """How many of them are judged at once."""


def _opened(settings: Config, workers: int) -> Opened:
    """Open this machine's devices, or a cluster's."""
    if is_cluster(settings.executor):
        # What was accepted waits for as long as there is no device.
        cluster = open_cluster(settings, patience_s=None)
        room = lambda: 2 * cluster.room()  # noqa: E731 - asked each time
        return Opened(cluster, _watched(cluster), cluster.device_model(), room, cluster.room)
    model, devices = one_model(settings), settings.eval.devices
    local = LocalExecutor(settings.home, workers, devices)
    count = max(workers, len(devices))
    return Opened(local, _watched(local), model, 2 * count, count)


def _watched(executor: LocalExecutor | RayExecutor) -> Evaluate:
    """Return how it evaluates, asking in each pause whether anybody wants the task still."""
    from tilewright.serve.dispatcher import STILL

    def evaluate(request: EvalRequest, seen: Callable[[str, dict[str, Any]], None]) -> EvalReport:
        return executor.evaluate(request, seen, idle=lambda: seen(STILL, {}))

    return evaluate


def _executor_of(where: str | None, address: str | None) -> str | None:
    """Return the setting `executor` that two flags stand for.

    Raises:
        ConfigError: an address of no cluster.
    """
    if address is not None and where != RAY:
        raise ConfigError("--address: of a Ray cluster; give --executor ray too")
    if address is None or address.startswith(f"{RAY}://"):
        return address or where
    return f"{RAY}:{address}"


def _tokens(home: Path, given: dict[str, Any]) -> None:
    """Do what is asked for with tokens."""
    name, revoked = given["name"], given["revoked"]
    if revoked is not None:
        revoke_token(home, revoked)
        say(f"{revoked}: its token is worth nothing any more; a running server knows at once")
    if name is not None:
        click.echo(make_token(home, name, given["scopes"] or ("submit", "read")))
    if revoked is None and name is None:
        found = listed_tokens(home)
        if given["as_json"]:
            click.echo(json.dumps(found))
            return
        for client, may in found.items():
            click.echo(f"{client}  {', '.join(may)}")
