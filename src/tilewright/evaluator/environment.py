"""Where a verdict was made: device, host and versions."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from functools import cache

from tilewright.evaluator.build import processor, toolchain
from tilewright.evaluator.host import Cores
from tilewright.records import Environment

__all__ = ["device_key", "environment"]

PACKAGES = ("torch", "triton", "numpy", "tilewright")


@cache
def device_name() -> str:
    """Return the processor's model."""
    for line in processor().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def device_key(cores: Cores) -> str:
    """Return what a calibration is filed under: the model and how its cores are used."""
    return f"{device_name()} | {os.cpu_count()} cores | {cores.threads} timed"


def environment(cores: Cores) -> Environment:
    """Describe this machine."""
    return Environment(
        device="cpu",
        device_name=device_name(),
        host={
            "kernel": platform.release(),
            "machine": platform.machine(),
            "cores": os.cpu_count() or 0,
            "timed_cores": list(cores.sides),
            "judge_cores": list(cores.judge),
            "compiler": toolchain(),
        },
        versions={"python": platform.python_version(), **_versions()},
    )


@cache
def _installed() -> tuple[tuple[str, str], ...]:
    found = []
    for name in PACKAGES:
        try:
            found.append((name, importlib.metadata.version(name)))
        except importlib.metadata.PackageNotFoundError:
            continue
    return tuple(found)


def _versions() -> dict[str, str]:
    return dict(_installed())
