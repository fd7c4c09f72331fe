"""`tilewright serve`: judge for other programs, over HTTP."""

from __future__ import annotations

from collections.abc import Callable

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
from tilewright.executors.local import LocalExecutor
from tilewright.serve.access import SCOPES, Tokens, is_loopback, make_token

__all__ = ["command"]


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
@click.option("--make-token", "name", metavar="CLIENT", help="Print a new token, and end.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice(SCOPES),
    help="What that token may do; default: submit and read. Repeatable.",
)
@settings_options
def command(  # noqa: PLR0913 - the options above
    host: str,
    port: int,
    workers: int,
    where: str | None,
    address: str | None,
    device: str | None,
    name: str | None,
    scopes: tuple[str, ...],
    file: str | None,
    overrides: tuple[str, ...],
) -> int:
    """Judge what other programs submit. What is accepted is on the disk, and is judged.

    On the loopback address everybody on this machine may ask; anywhere else a token is wanted,
    made by --make-token, sent as Bearer or as the password of http://x:TOKEN@host:port.
    """
    flags = {**device_flags(device), "executor": ("--executor", _executor_of(where, address))}
    settings = load_settings(file, overrides, flags)
    home = usable_home(settings) / "serve"
    if name is not None:
        click.echo(make_token(home, name, scopes or ("submit", "read")))
        return 0
    ready_to_judge(settings)
    if settings.executor != LOCAL and not is_cluster(settings.executor):
        raise ConfigError("executor: a server judges itself, or on a cluster; name no other server")
    tokens = None if is_loopback(host) else Tokens(home)
    if tokens is not None and not tokens:
        raise ConfigError(
            f"--host {host}: others reach that address, so a token is wanted, and there is none: "
            "tilewright serve --make-token CLIENT"
        )
    try:
        import uvicorn

        from tilewright.serve.app import Service, create_app
        from tilewright.serve.kernelgym import add_kernelgym
    except ImportError as error:
        raise ConfigError(
            f"the server needs {error.name}: pip install 'tilewright[serve]'"
        ) from error
    executor, model, room = _opened(settings, workers)
    try:
        service = Service(
            settings,
            model,
            lambda request, seen: executor.evaluate(request, seen),
            home,
            room,
        )
        say(f"judging on {model}; tasks are kept in {home}; http://{host}:{port}/docs")
        app = create_app(service, tokens)
        add_kernelgym(app)
        uvicorn.run(app, host=host, port=port, log_level="warning")
    finally:
        executor.close()
    return 0


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


def _opened(settings: Config, workers: int) -> tuple[Executor, str, int | Callable[[], int]]:
    """Return the executor, the model of its devices, and how many tasks it has room for."""
    if is_cluster(settings.executor):
        # What was accepted waits for as long as there is no device.
        cluster = open_cluster(settings, patience_s=None)
        return cluster, cluster.device_model(), lambda: 2 * cluster.room()
    model, devices = one_model(settings), settings.eval.devices
    local = LocalExecutor(settings.home, workers, devices)
    return local, model, 2 * max(workers, len(devices))
