"""One leased device of a cluster, from inside: what runs in an actor of `executors.cluster`.

Everything that leaves is plain data: numbers, texts, and a report as JSON.
"""

from __future__ import annotations

import importlib.util
import os
import queue
import socket
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tilewright._version import __version__
from tilewright.config import load
from tilewright.errors import InfrastructureError, TilewrightError
from tilewright.evaluator.devices.devices import find_device, gpu_names
from tilewright.executors.local import LocalExecutor, share_cores
from tilewright.records import EvalRequest

__all__ = ["DeviceWorker", "describe_device"]

Said = tuple[str, dict[str, Any]]
STILL_S = 0.5


class _Dropped(Exception):
    """Nobody wants this evaluation any more."""


def describe_device(gpus: Sequence[str]) -> dict[str, Any]:
    """Return what this process has leased and how it would judge there; `trouble`: why not.

    `gpus` names the leased GPU as Ray does, by index or UUID; none: the processor.
    """
    found: dict[str, Any] = {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "tilewright": __version__,
        "python": ".".join(map(str, sys.version_info[:3])),
        "device": "cpu",
        "model": "",
        "trouble": "",
    }
    try:
        found["device"] = _device_name(gpus)
        found["model"] = find_device(found["device"]).model
    except (TilewrightError, OSError) as error:
        found["trouble"] = str(error)
    if importlib.util.find_spec("torch") is None:
        found["trouble"] = "torch is not installed there; pip install 'tilewright[judge]'"
    return found


def _device_name(gpus: Sequence[str]) -> str:
    if not gpus:
        return "cpu"
    known = gpu_names()
    for name, uuid in known.items():
        if gpus[0] in (name.partition(":")[2], uuid):
            return name
    raise InfrastructureError(f"the leased GPU {gpus[0]} is none of {', '.join(known) or 'none'}")


class DeviceWorker:
    """Judges on one leased device, several at once. Lifetime: the actor, and with it the lease."""

    def __init__(self, device: str, workers: int, home: str | None) -> None:
        # A node has a home of its own: its builds and its calibration are of no use elsewhere.
        where = load().home if home is None else Path(home)
        self._local = LocalExecutor(where, workers, (device,), cores=_cores(device))
        self._dropped: set[int] = set()

    def evaluate(self, number: int, request: str, checks: tuple[str, ...] | None) -> Iterator[Said]:
        """Yield the events of an evaluation, `still` in long pauses, and last what became of it.

        That is `report`, `failed` or `broken`.
        """
        said: queue.SimpleQueue[Said] = queue.SimpleQueue()

        def still() -> None:
            if number in self._dropped:
                raise _Dropped

        def seen(event: str, fields: dict[str, Any]) -> None:
            still()
            said.put(("event", {"event": event, "fields": fields}))

        def judge() -> None:
            try:
                given = EvalRequest.from_json(request)
                report = self._local.evaluate(given, seen, checks=checks, idle=still)
                said.put(("report", {"text": report.to_json()}))
            except TilewrightError as error:
                said.put(("failed", {"type": type(error).__name__, "message": str(error)}))
            except _Dropped:
                said.put(("failed", {"type": "InfrastructureError", "message": "cancelled"}))
            except BaseException as error:  # noqa: BLE001 - said to whoever waits
                said.put(("broken", {"message": f"{type(error).__name__}: {error}"}))

        thread = threading.Thread(target=judge, daemon=True)
        thread.start()
        yield from _until_over(said)
        self._dropped.discard(number)

    def drop(self, number: int) -> None:
        """End an evaluation at its next step."""
        self._dropped.add(number)


def _until_over(said: queue.SimpleQueue[Said]) -> Iterator[Said]:
    while True:
        try:
            item = said.get(timeout=STILL_S)
        except queue.Empty:
            # Whoever waits may have had enough, and is asked.
            item = ("still", {})
        yield item
        if item[0] not in ("event", "still"):
            return


def _cores(device: str) -> tuple[int, ...]:
    """Return this device's part of the machine's cores, whoever leases the others."""
    if device == "cpu":
        return ()
    names = list(gpu_names())
    return share_cores(names)[names.index(device)]
