"""The device, host and versions of a verdict, as its report records them."""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path
from typing import Any

from tilewright.evaluator.devices.devices import CPU, Cores, Device
from tilewright.evaluator.devices.toolchain import installed_versions, toolchain
from tilewright.records import ReportEnvironment
from tilewright.records.file_lock import lock
from tilewright.records.whole_files import write_whole
from tilewright.wire.frames import Fields


def device_key(cores: Cores, device: Device = CPU) -> str:
    """Return what a calibration is filed under: the model and how it is used."""
    if device.is_gpu:
        return f"{device.model} | driver {device.driver}"
    return f"{device.model} | {os.cpu_count()} cores | {cores.threads} timed"


def read_by_device(path: Path) -> dict[str, Any]:
    """Return what a JSON file holds, by device; nothing if it is missing or damaged."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


def write_for_device(path: Path, device: str, value: object) -> None:
    """Store the value of `device`; others in the file are kept.

    Raises:
        OSError: the file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path.with_name(f".{path.name}.lock"), "a", encoding="ascii") as file:
        # Supervisors of other devices read the same file, and write into it.
        lock(file)
        document = {**read_by_device(path), device: value}
        write_whole(path, json.dumps(document, indent=1, sort_keys=True))


def environment(
    cores: Cores, device: Device = CPU, conditions: dict[str, Fields] | None = None
) -> ReportEnvironment:
    """Describe this machine."""
    gpu = {"uuid": device.uuid, "driver": device.driver, "arch": device.arch, **(conditions or {})}
    return ReportEnvironment(
        device=device.name,
        device_name=device.model,
        host={
            **(gpu if device.is_gpu else {}),
            "kernel": platform.release(),
            "machine": platform.machine(),
            "cores": os.cpu_count() or 0,
            "timed_cores": list(cores.runners),
            "judge_cores": list(cores.judge),
            "compiler": toolchain(),
        },
        versions={"python": platform.python_version(), **installed_versions()},
    )
