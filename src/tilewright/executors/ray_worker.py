"""The evaluations of one Ray actor on the device that it has leased.

An actor answers in plain data: numbers, texts, and reports as JSON.
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

Message = tuple[str, dict[str, Any]]
HEARTBEAT_S = 0.5
"""Seconds without an event after which the actor sends `still`."""


class _Dropped(Exception):
    """The caller has dropped this evaluation."""


def describe_device(gpus: Sequence[str]) -> dict[str, Any]:
    """Return a description of the leased device; its `trouble` says why it cannot be used, if so.

    `gpus` names the leased GPU as Ray does, by index or UUID; if empty, the device is the CPU.
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
        found["trouble"] = "torch is not installed on that node; pip install 'tilewright[judge]'"
    return found


def _device_name(gpus: Sequence[str]) -> str:
    if not gpus:
        return "cpu"
    known = gpu_names()
    for name, uuid in known.items():
        if gpus[0] in (name.partition(":")[2], uuid):
            return name
    raise InfrastructureError(
        f"the leased GPU {gpus[0]} is not among the GPUs of the node: {', '.join(known) or 'none'}"
    )


class DeviceWorker:
    """Evaluates requests on one leased device, several at once. Lifetime: the actor."""

    def __init__(self, device: str, workers: int, home: str | None) -> None:
        # Each node has its own home: builds and calibration hold for one machine.
        where = load().home if home is None else Path(home)
        # Its share of the cores, also if other actors lease the other devices.
        names = [] if device == "cpu" else list(gpu_names())
        cores = share_cores(names)[names.index(device)] if names else ()
        self._local = LocalExecutor(where, workers, (device,), cores=cores)
        self._dropped: set[int] = set()

    def evaluate(
        self, number: int, request: str, checks: tuple[str, ...] | None
    ) -> Iterator[Message]:
        """Yield the events of an evaluation, `still` in long pauses, and last its result.

        The result is `report`, `failed` or `broken`.
        """
        messages: queue.SimpleQueue[Message] = queue.SimpleQueue()

        def still() -> None:
            if number in self._dropped:
                raise _Dropped

        def on_event(event: str, fields: dict[str, Any]) -> None:
            still()
            messages.put(("event", {"event": event, "fields": fields}))

        def judge() -> None:
            try:
                given = EvalRequest.from_json(request)
                report = self._local.evaluate(given, on_event, checks=checks, idle=still)
                messages.put(("report", {"text": report.to_json()}))
            except TilewrightError as error:
                messages.put(("failed", {"type": type(error).__name__, "message": str(error)}))
            except _Dropped:
                messages.put(("failed", {"type": "InfrastructureError", "message": "cancelled"}))
            except BaseException as error:  # noqa: BLE001 - the caller gets it
                messages.put(("broken", {"message": f"{type(error).__name__}: {error}"}))

        threading.Thread(target=judge, daemon=True).start()
        kind = "still"
        while kind in ("event", "still"):
            try:
                kind, fields = messages.get(timeout=HEARTBEAT_S)
            except queue.Empty:
                # A heartbeat lets the caller drop the evaluation.
                kind, fields = "still", {}
            yield kind, fields
        self._dropped.discard(number)

    def drop(self, number: int) -> None:
        """End an evaluation at its next step."""
        self._dropped.add(number)
