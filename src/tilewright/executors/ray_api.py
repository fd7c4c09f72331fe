"""All calls of Ray. No other module imports it, and this one does so at the first call."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import sys
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from tilewright.errors import ConfigError, reason_of
from tilewright.executors.local import MIN_CORES_PER_DEVICE

CONNECT_S = 5.0
"""Seconds within which an address must accept a connection."""
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"
SETTINGS = b"\4"
"""The start of an HTTP/2 connection, and the type of the first frame of an answer (RFC 9113, 3.4
and 6.5). Ray uses HTTP/2."""
TLS_ALERT = b"\x15"
STORE_BYTES = 80 << 20
"""Size of Ray's object store in a cluster that this process starts: reports are small."""


def _ray() -> Any:  # noqa: ANN401 - a module without types
    try:
        import ray
    except ImportError as error:
        raise ConfigError("a cluster needs ray: pip install 'tilewright[ray]'") from error
    return ray


def connect(address: str | None) -> bool:
    """Join a cluster, or start one here; return whether this call did."""
    if address is not None and address != "auto":
        _check_address(address)
    ray = _ray()
    if ray.is_initialized():
        return False
    options: dict[str, Any] = {"address": address or "local"}
    if address is None:
        options |= {"object_store_memory": STORE_BYTES, "include_dashboard": False}
    try:
        ray.init(log_to_driver=False, logging_level=logging.ERROR, **options)
    except Exception as error:
        # Ray raises many types: no cluster, another version of Ray or Python, a missing token.
        reason = " ".join(str(error).split())[:600]
        raise ConfigError(
            f"executor ray:{address or ''}: {reason}; start a cluster with ray start --head; if it "
            "has a token, set RAY_AUTH_MODE=token here too"
        ) from error
    return True


def _check_address(address: str) -> None:
    """Raise an error unless a Ray node listens there; Ray would retry for minutes in silence."""
    named = f"executor ray:{address}".replace("ray:ray:", "ray:")
    try:
        parts = urlsplit(address if "://" in address else f"ray://{address}")
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ConfigError(f"{named}: {error}") from error
    if not host or not port:
        raise ConfigError(f"{named}: no HOST:PORT, as ray start --head prints it")
    answer = b""
    try:
        with socket.create_connection((host, port), CONNECT_S) as opened:
            opened.settimeout(CONNECT_S)
            opened.sendall(PREFACE)
            with contextlib.suppress(TimeoutError):
                answer = opened.recv(64)
    except (OSError, UnicodeError) as error:
        reason = f"not reached within {CONNECT_S:g} s: {reason_of(error)}"
        raise ConfigError(
            f"{named}: {reason}; check that it is the address that ray start --head printed, and "
            "that the node runs"
        ) from error
    # With TLS, Ray sends no answer or an alert.
    if answer and answer[3:4] != SETTINGS and answer[:1] != TLS_ALERT:
        raise ConfigError(f"{named}: the program at this port is not Ray; check the port")


def disconnect() -> None:
    """Leave the cluster; a cluster that this process started ends."""
    _ray().shutdown()


def lost_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions for a lost actor, node or answer."""
    from ray import exceptions

    return (exceptions.RayError,)


def ask(device: str, workers: int, accelerator: str | None) -> Any:  # noqa: ANN401 - Ray's
    """Request an actor with a lease; Ray starts it once a device is free."""
    ray = _ray()
    lease = {"num_gpus": 1} if device == "cuda" else {"num_cpus": MIN_CORES_PER_DEVICE}
    made = ray.remote(_actor_class()).options(
        # Two more calls than evaluations: `about`, and `drop`.
        max_concurrency=workers + 2,
        max_restarts=0,
        accelerator_type=accelerator,
        **lease,
    )
    return made.remote([os.getcwd(), os.path.dirname(os.path.realpath(sys.argv[0]))])


def _actor_class() -> type[Any]:
    # The class refers to nothing of this module, so Ray sends its code. On a node without
    # tilewright, or with another version, it therefore runs, and reports the problem.
    class DeviceActor:
        def __init__(self, foreign: list[str]) -> None:
            import sys

            # Ray adds the caller's folders; a file there may have the name of a module.
            sys.path[:] = [path for path in sys.path if path not in foreign]
            self.worker: Any = None

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
                    self.worker = DeviceWorker(found["device"], workers, home)
            except Exception as error:  # noqa: BLE001 - of the version installed there
                found["trouble"] = f"tilewright cannot be used on that node: {error}"
            return found

        def evaluate(self, number: int, request: str, checks: Any) -> Iterator[Any]:  # noqa: ANN401
            yield from self.worker.evaluate(number, request, checks)

        def drop(self, number: int) -> None:
            self.worker.drop(number)

    return DeviceActor


def answer(asked: Any, within_s: float) -> Any:  # noqa: ANN401 - Ray's
    """Return an actor's answer, or `None` if there is none in time."""
    ray = _ray()
    ready, _ = ray.wait([asked], timeout=within_s)
    return ray.get(ready[0]) if ready else None


def stream(method: Any, *given: Any) -> Iterator[Any]:  # noqa: ANN401 - Ray's
    """Yield each item of an actor's generator as soon as it comes."""
    ray = _ray()
    for item in method.options(num_returns="streaming").remote(*given):
        yield ray.get(item)


def kill(actor: Any) -> None:  # noqa: ANN401 - Ray's
    """End an actor; its supervisors end with it."""
    ray = _ray()
    if ray.is_initialized():
        ray.kill(actor)


def nodes() -> list[dict[str, Any]]:
    """Return the live nodes of the cluster: id, address, host, resources."""
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
