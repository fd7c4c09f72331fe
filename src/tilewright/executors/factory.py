"""The executor that the setting `executor` names."""

from __future__ import annotations

import atexit
import sys
from pathlib import Path
from urllib.parse import parse_qs

from tilewright.config import LOCAL, RAY, Config, environment
from tilewright.errors import ConfigError
from tilewright.evaluator.devices.devices import find_device
from tilewright.executors.base import Executor
from tilewright.executors.census_executor import PREFIX, CensusExecutor
from tilewright.executors.host_connection import BATCH_VARIABLES, HostConnector, may_start
from tilewright.executors.local import LocalExecutor, without_host
from tilewright.executors.ray_executor import RayExecutor
from tilewright.executors.remote import RemoteExecutor

_leased: dict[str, RayExecutor] = {}
"""Executors of clusters that only told a model until now."""
_opened: dict[str, RayExecutor] = {}
"""Executors of clusters that `open_executor` handed out last."""


def open_executor(settings: Config, workers: int = 1) -> Executor:
    """Return the executor of these settings: this machine's, a cluster's, a server's, a census."""
    if settings.executor == LOCAL:
        attach = without_host
        if settings.host != "never":
            terminal = sys.stderr is not None and sys.stderr.isatty()
            starts = may_start(settings.host, environment(BATCH_VARIABLES), terminal=terminal)
            attach = HostConnector(settings.home, starts).attach
        return LocalExecutor(settings.home, workers, settings.eval.devices, attach=attach)
    if is_cluster(settings.executor):
        key = _lease_key(settings)
        cluster = _leased.pop(key, None) or open_cluster(settings)
        _opened[key] = cluster
        return cluster
    if is_census(settings.executor):
        return open_census(settings.executor)
    return RemoteExecutor(settings.executor)


def is_cluster(name: str) -> bool:
    """Tell whether the setting `executor` names a Ray cluster."""
    return name.partition("?")[0].partition(":")[0] == RAY


def is_census(name: str) -> bool:
    """Tell whether the setting `executor` names a census file."""
    return name.startswith(PREFIX)


def open_census(name: str) -> CensusExecutor:
    """Return the executor of a census file, `census:FILE`."""
    return CensusExecutor(Path(name.removeprefix(PREFIX)))


def open_cluster(settings: Config, patience_s: float | None = 300.0) -> RayExecutor:
    """Return the executor of a cluster: `ray`, `ray:auto`, `ray:HOST:PORT` or `ray://HOST:PORT`.

    Each may end with `?accelerator=NAME`.
    """
    address, _, query = settings.executor.partition("?")
    asked = parse_qs(query, keep_blank_values=True)
    if asked.keys() - {"accelerator"}:
        raise ConfigError(f"executor {settings.executor!r}: only accelerator=NAME may follow ?")
    if not address.startswith(f"{RAY}://"):
        _, colon, address = address.partition(":")
        if colon and not address:
            raise ConfigError(
                f"executor {settings.executor!r}: no address of a cluster; write ray:HOST:PORT, "
                "ray:auto, or ray alone to start one on this machine"
            )
    return RayExecutor(
        address or None,
        device=settings.eval.device,
        home=settings.home,
        patience_s=patience_s,
        accelerator=asked.get("accelerator", [None])[0],
    )


def device_model(settings: Config, name: str) -> str:
    """Return the model of a device, or that of the server's or cluster's devices."""
    if settings.executor == LOCAL:
        return find_device(name).model
    if is_cluster(settings.executor):
        return cached_cluster(settings).device_model()
    if is_census(settings.executor):
        return open_census(settings.executor).device_model
    return RemoteExecutor(settings.executor).device_model()


def cached_cluster(settings: Config) -> RayExecutor:
    """Return the open executor of a cluster, or one that `open_executor` hands out later."""
    key = _lease_key(settings)
    if key in _opened and _opened[key].is_open:
        # Another one would ask for another device.
        return _opened[key]
    if key not in _leased:
        _leased[key] = open_cluster(settings)
        atexit.register(_give_back, key)
    return _leased[key]


def _give_back(key: str) -> None:
    if (kept := _leased.pop(key, None)) is not None:
        kept.close()


def _lease_key(settings: Config) -> str:
    return f"{settings.executor} {settings.eval.device} {settings.home}"
