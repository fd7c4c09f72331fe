"""What is asked of Ray: the one module that imports it, when it is first used."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import sys
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from tilewright.errors import ConfigError
from tilewright.executors.local import MIN_CORES_PER_DEVICE

__all__ = [
    "answer",
    "ask",
    "connect",
    "disconnect",
    "kill",
    "lost_errors",
    "nodes",
    "nodes_line",
    "stream",
]

KNOCK_S = 5.0
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"
SETTINGS = b"\4"
"""How a connection of HTTP/2 begins, which Ray speaks, and the kind of the first frame of an answer
(RFC 9113, 3.4 and 6.5)."""
TLS_ALERT = b"\x15"
STORE_BYTES = 80 << 20
"""Ray's store of objects in a cluster of our own: reports are small."""


def _ray() -> Any:  # noqa: ANN401 - a module without types
    try:
        import ray
    except ImportError as error:
        raise ConfigError("a cluster needs ray: pip install 'tilewright[ray]'") from error
    return ray


def connect(address: str | None) -> bool:
    """Join a cluster, or start one here; tell whether it is ours to leave.

    Raises:
        ConfigError: Ray is not installed, not reached, or of another version.
    """
    if address is not None and address != "auto":
        _knock(address)
    ray = _ray()
    if ray.is_initialized():
        return False
    options: dict[str, Any] = {"address": address or "local"}
    if address is None:
        options |= {"object_store_memory": STORE_BYTES, "include_dashboard": False}
    try:
        ray.init(log_to_driver=False, logging_level=logging.ERROR, **options)
    except Exception as error:
        # Whatever Ray raises: no cluster, another version of Ray or Python, a missing token.
        said = " ".join(str(error).split())[:600]
        raise ConfigError(
            f"executor ray:{address or ''}: {said}; a cluster is started by ray start --head, and "
            "where it has a token, RAY_AUTH_MODE=token is wanted here too"
        ) from error
    return True


def _knock(address: str) -> None:
    """Find out whether anything listens at HOST:PORT or ray://HOST:PORT.

    Ray itself tries again for minutes, and says nothing meanwhile.

    Raises:
        ConfigError: nothing does, or it is no such address.
    """
    named = f"executor ray:{address}".replace("ray:ray:", "ray:")
    try:
        parts = urlsplit(address if "://" in address else f"ray://{address}")
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ConfigError(f"{named}: {error}") from error
    if not host or not port:
        raise ConfigError(f"{named}: no HOST:PORT, as ray start --head prints it")
    said = b""
    try:
        with socket.create_connection((host, port), KNOCK_S) as opened:
            opened.settimeout(KNOCK_S)
            opened.sendall(PREFACE)
            with contextlib.suppress(TimeoutError):
                said = opened.recv(64)
    except (OSError, UnicodeError) as error:
        raise ConfigError(
            f"{named}: not reached within {KNOCK_S:g} s: {error}; is it the address that "
            "ray start --head printed, and does that node run?"
        ) from error
    # Where Ray speaks by TLS it answers nothing, or with an alert.
    if said and said[3:4] != SETTINGS and said[:1] != TLS_ALERT:
        raise ConfigError(f"{named}: what listens there does not speak as Ray does; which port?")


def disconnect() -> None:
    """Leave the cluster; one that was started here ends."""
    _ray().shutdown()


def lost_errors() -> tuple[type[Exception], ...]:
    """Return what is raised where an actor, its node or its answer is gone."""
    from ray import exceptions

    return (exceptions.RayError,)


def ask(device: str, workers: int, accelerator: str | None) -> Any:  # noqa: ANN401 - Ray's
    """Ask for an actor with a lease; it is there once Ray has a device for it."""
    ray = _ray()
    lease: dict[str, Any] = (
        {"num_gpus": 1} if device == "cuda" else {"num_cpus": MIN_CORES_PER_DEVICE}
    )
    if accelerator is not None:
        lease["accelerator_type"] = accelerator
    # Beside evaluations: whoever asks about it, and whoever drops one.
    made = ray.remote(_door()).options(max_concurrency=workers + 2, max_restarts=0, **lease)
    return made.remote([os.getcwd(), os.path.dirname(os.path.realpath(sys.argv[0]))])


def _door() -> type[Any]:
    """Return the class of the actors.

    It is made here and refers to nothing of this module, so that it is sent as it is: where a node
    has no tilewright, or another, the actor lives, holds its lease, and says so.
    """

    class Door:
        def __init__(self, foreign: list[str]) -> None:
            import sys

            # Ray adds the folders of whoever asks; what lies there may be called like a module.
            sys.path[:] = [path for path in sys.path if path not in foreign]
            self.seat: Any = None

        def about(self, version: str, workers: int, home: str | None) -> dict[str, Any]:
            import platform

            import ray

            context = ray.get_runtime_context()
            found: dict[str, Any] = {
                "node": context.get_node_id(),
                "address": ray.util.get_node_ip_address(),  # type: ignore[no-untyped-call]
                "host": platform.node(),
                "device": "device",
                "ray": ray.__version__,
                "python": platform.python_version(),
            }
            try:
                from tilewright.executors.ray_worker import DeviceWorker, describe_device

                found |= describe_device(context.get_accelerator_ids().get("GPU", []))
                if not found["trouble"] and found["tilewright"] == version:
                    self.seat = DeviceWorker(found["device"], workers, home)
            except Exception as error:  # noqa: BLE001 - of whatever is installed there
                found["trouble"] = f"tilewright cannot be used there: {error}"
            return found

        def evaluate(self, number: int, request: str, checks: Any) -> Iterator[Any]:  # noqa: ANN401
            yield from self.seat.evaluate(number, request, checks)

        def drop(self, number: int) -> None:
            self.seat.drop(number)

    return Door


def answer(asked: Any, within_s: float) -> Any:  # noqa: ANN401 - Ray's
    """Return an actor's answer, or `None` where there is none yet."""
    ray = _ray()
    ready, _ = ray.wait([asked], timeout=within_s)
    return ray.get(ready[0]) if ready else None


def stream(method: Any, *given: Any) -> Iterator[Any]:  # noqa: ANN401 - Ray's
    """Yield what an actor's generator yields, as it does."""
    ray = _ray()
    for item in method.options(num_returns="streaming").remote(*given):
        yield ray.get(item)


def kill(actor: Any) -> None:  # noqa: ANN401 - Ray's
    """End an actor; its supervisors end with it."""
    ray = _ray()
    if ray.is_initialized():
        ray.kill(actor)


def nodes() -> list[dict[str, Any]]:
    """Return the nodes of the cluster that are alive: id, address, host, resources."""
    return [
        {
            "node": item["NodeID"],
            "address": item["NodeManagerAddress"],
            "host": item["NodeManagerHostname"],
            "resources": item["Resources"],
        }
        for item in _ray().nodes()
        if item["Alive"]
    ]


def nodes_line() -> str:
    """Return the nodes and what they have, in one line."""
    said = [
        f"{item['host']} ({item['address']}) has {item['resources'].get('CPU', 0):g} CPUs and "
        f"{item['resources'].get('GPU', 0):g} GPUs"
        for item in nodes()
    ]
    return "; ".join(said) or "it has no node"
