"""What a Ray cluster has: nodes, devices that can be leased, versions, how much fits."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

from tilewright import __version__
from tilewright.cli.machine import Item
from tilewright.config import Config
from tilewright.executors import raylink
from tilewright.executors.choose import leased_cluster
from tilewright.executors.cluster import RayExecutor

__all__ = ["cluster_items"]

SETTLED_S, MOST_S = 4.0, 60.0
"""Nothing more is expected when no device has come for so long; and in all."""


def cluster_items(settings: Config) -> list[Item]:
    """Lease what there is, and return a line for each node and each device.

    Raises:
        ConfigError: the cluster is not reached.
    """
    executor = leased_cluster(settings)
    _settle(executor)
    items = [_node(item) for item in raylink.nodes()]
    members = executor.members()
    items += [_device(item) for item in members]
    same = f"tilewright {__version__}, the same Python, and torch on every node"
    for where, why in executor.refused.items():
        items.append(Item(where, False, why, "one more device", same))
    return [*items, _room(executor, members)]


def _settle(executor: RayExecutor) -> None:
    """Wait until no more devices come."""
    seen, since, limit = -1, time.monotonic(), time.monotonic() + MOST_S
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
        return Item("room", False, said, "judging", "ray start on a node that has one")
    models = Counter(item["model"] for item in members)
    shown = ", ".join(f"{count} x {name}" for name, count in models.items())
    return Item("room", True, f"{executor.room()} evaluations at once, on {shown}")
