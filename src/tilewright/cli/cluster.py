"""Nodes and devices of a Ray cluster, for `tilewright doctor`."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

from tilewright._version import __version__
from tilewright.cli.system_checks import Item
from tilewright.config import Config
from tilewright.executors import ray_api
from tilewright.executors.factory import cached_cluster
from tilewright.executors.ray_executor import RayExecutor

__all__ = ["cluster_items"]

SETTLED_S = 4.0
"""Seconds without a new device after which the list of devices is complete."""
MAX_SETTLE_S = 60.0
"""Most seconds that `doctor` waits for devices."""


def cluster_items(settings: Config) -> list[Item]:
    """Lease the free devices, and return a row for each node and each device.

    Raises:
        ConfigError: the cluster cannot be reached.
    """
    executor = cached_cluster(settings)
    _settle(executor)
    items = [_node(item) for item in ray_api.nodes()]
    members = executor.members()
    items += [_device(item) for item in members]
    same = f"tilewright {__version__}, the same Python, and torch on every node"
    for where, why in executor.refused.items():
        items.append(Item(where, False, why, "one more device", same))
    return [*items, _room(executor, members)]


def _settle(executor: RayExecutor) -> None:
    """Wait until no more devices appear."""
    seen, since, limit = -1, time.monotonic(), time.monotonic() + MAX_SETTLE_S
    while time.monotonic() < limit:
        count = len(executor.members()) + len(executor.refused)
        if count != seen:
            seen, since = count, time.monotonic()
        if count and time.monotonic() - since > SETTLED_S:
            return
        time.sleep(0.1)


def _node(item: dict[str, Any]) -> Item:
    resources = item["resources"]
    kinds = [name.partition(":")[2] for name in resources if name.startswith("accelerator_type:")]
    said = f"{resources.get('CPU', 0):g} CPUs, {resources.get('GPU', 0):g} GPUs"
    if kinds:
        said += f" ({', '.join(kinds)})"
    return Item(f"node {item['address']}", True, f"{item['host']}: {said}")


def _device(item: dict[str, Any]) -> Item:
    said = f"{item['model']}; tilewright {item['tilewright']}, Python {item['python']}, Ray "
    return Item(f"{item['device']} of {item['host']}", True, f"{said}{item['ray']}")


def _room(executor: RayExecutor, members: list[dict[str, Any]]) -> Item:
    if not members:
        said = executor.trouble or "no device is free"
        return Item("capacity", False, said, "judging", "run `ray start` on a node with a device")
    models = Counter(item["model"] for item in members)
    shown = ", ".join(f"{count} x {name}" for name, count in models.items())
    return Item("capacity", True, f"{executor.room()} evaluations at the same time, on {shown}")
