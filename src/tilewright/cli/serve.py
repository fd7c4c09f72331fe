"""`tilewright serve`: judge candidates that other programs submit over HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from tilewright.cli import options
from tilewright.cli.options import load_settings, number, one_model, option, setting, usable_home
from tilewright.cli.output import print_line
from tilewright.cli.usage_errors import CommandGroup
from tilewright.config import LOCAL, RAY, Config
from tilewright.errors import ConfigError
from tilewright.executors.factory import is_cluster, open_cluster
from tilewright.executors.local import LocalExecutor
from tilewright.executors.ray_executor import RayExecutor
from tilewright.executors.remote import DEFAULT_PORT
from tilewright.records import EvalReport, EvalRequest
from tilewright.serve import auth

Judges = LocalExecutor | RayExecutor
Count = int | Callable[[], int]
Event = Callable[[str, dict[str, Any]], None]

RAY_HELP = "Address of the cluster, as `ray start --head` prints it; default: start one here."
HOST_HELP = "Address at which the server listens."


@click.group("serve", cls=CommandGroup, invoke_without_command=True)
@option("--host", None, HOST_HELP, default="127.0.0.1", show_default=True)
@number("--port", "Port of the server; 0: any free port.", 0, 65535, DEFAULT_PORT)
@number("--workers", options.WORKERS_HELP, 1, 64, 2)
@click.option(
    "--executor",
    "where",
    type=options.OneOf((LOCAL, RAY)),
    help="Judge on this machine, or on the devices of a Ray cluster. (executor)",
)
@option("--ray-address", "HOST:PORT", RAY_HELP)
@options.DEVICE
@setting(
    "--protocol",
    "serve.protocol",
    "Scoring rules of the KernelGYM endpoints.",
    type=options.OneOf(["strict", "kernelgym"]),
)
@options.SETTINGS
@click.pass_context
def command(context: click.Context, /, **given: Any) -> int:  # noqa: ANN401 - the options above
    """Judge candidates that other programs submit over HTTP.

    The server stores every accepted task on disk, and judges it also after a restart. Clients on
    this machine need no token while the server listens on a loopback address. On any other
    address each client needs a token from `serve token create`. The client sends it as Bearer
    token, or as the password in http://x:TOKEN@host:port.

    A signal stops the server after the running evaluations. The next server continues with the
    queued tasks.
    """
    if context.invoked_subcommand is not None:
        # A sub-command would ignore the options of the server.
        if ParameterSource.COMMANDLINE in map(context.get_parameter_source, given):
            raise ConfigError("serve token: give its options after the sub-command, none before")
        return 0
    executor = _executor_of(given["where"], given["ray_address"])
    settings = load_settings(given, {"executor": ("--executor", executor)})
    home = usable_home(settings) / "serve"
    options.ready_to_judge(settings)
    if settings.executor != LOCAL and not is_cluster(settings.executor):
        raise ConfigError(
            f"executor {settings.executor}: a server judges on this machine or on a cluster, not "
            "on another server; leave the setting out, or give --executor ray"
        )
    host = given["host"]
    tokens = None if auth.is_loopback(host) else auth.Tokens(home)
    if tokens is not None and not tokens:
        raise ConfigError(
            f"--host {host}: other machines reach that address, so clients need a token, and "
            "there is none: tilewright serve token create CLIENT"
        )
    _serve(settings, home, tokens, given)
    return 0


def _serve(settings: Config, home: Path, tokens: auth.Tokens | None, given: dict[str, Any]) -> None:
    host, port = given["host"], given["port"]
    try:
        from tilewright.serve.app import create_app
        from tilewright.serve.dispatcher import HEARTBEAT
        from tilewright.serve.server_process import bind, hold, listen
        from tilewright.serve.service import Service
    except ImportError as error:
        text = f"the server needs {error.name}: pip install 'tilewright[serve]'"
        raise ConfigError(text) from error
    with hold(home, print_line), bind(host, port) as bound:
        model, executor, running, workers = _opened(settings, given["workers"])

        def evaluate(request: EvalRequest, on_event: Event) -> EvalReport:
            # A heartbeat is emitted while it waits for a device.
            return executor.evaluate(request, on_event, idle=lambda: on_event(HEARTBEAT, {}))

        service = Service(settings, model, evaluate, home, running, workers, tokens)
        print_line(
            f"judging on {model}; tasks are kept in {home}; dashboard: http://{host}:{port}/"
        )
        with closing(executor):
            listen(create_app(service), service, bound, executor.kill)


def _opened(settings: Config, workers: int) -> tuple[str, Judges, Count, Count]:
    """Return the device model, the executor, and the most tasks and evaluations at a time."""
    if is_cluster(settings.executor):
        # Accepted tasks stay queued while the cluster has no free device.
        cluster = open_cluster(settings, patience_s=None)
        return cluster.device_model(), cluster, lambda: 2 * cluster.room(), cluster.room
    model, devices = one_model(settings), settings.eval.devices
    count = max(workers, len(devices))
    return model, LocalExecutor(settings.home, workers, devices), 2 * count, count


def _executor_of(where: str | None, address: str | None) -> str | None:
    """Return the setting `executor` that the two flags give together."""
    if address is not None and where != RAY:
        raise ConfigError("--ray-address needs --executor ray")
    if address is None or address.startswith(f"{RAY}://"):
        return address or where
    return f"{RAY}:{address}"


@command.group("token", cls=CommandGroup)
def token() -> None:
    """Make, list and revoke the tokens that clients need to reach a server from elsewhere."""


@token.command("create")
@click.argument("client")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=options.OneOf(auth.SCOPES),
    help="An action that the token allows; default: submit and read. Repeatable.",
)
@options.SETTINGS
def create_token(client: str, scopes: tuple[str, ...], **given: Any) -> int:  # noqa: ANN401 - the options
    """Print a new token for CLIENT. It replaces an earlier one of that name."""
    click.echo(auth.make_token(_token_home(given), client, scopes or ("submit", "read")))
    return 0


@token.command("list")
@options.JSON
@options.SETTINGS
def list_tokens(as_json: bool, **given: Any) -> int:  # noqa: ANN401 - the options
    """Print the clients that have a token, and the scopes of each."""
    found = auth.listed_tokens(_token_home(given))
    lines = [f"{client}  {', '.join(scopes)}\n" for client, scopes in found.items()]
    click.echo(f"{json.dumps(found)}\n" if as_json else "".join(lines), nl=False)
    return 0


@token.command("revoke")
@click.argument("client")
@options.SETTINGS
def revoke(client: str, **given: Any) -> int:  # noqa: ANN401 - the options
    """Make the token of CLIENT invalid. A running server refuses it at once."""
    auth.revoke_token(_token_home(given), client)
    print_line(f"{client}: the token is revoked; a running server refuses it at once")
    return 0


def _token_home(given: dict[str, Any]) -> Path:
    return usable_home(load_settings(given)) / "serve"
