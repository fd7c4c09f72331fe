"""The driver's readings of a GPU: clocks, heat, throttling, memory, load. No CUDA, no torch.

The package `nvidia-ml-py` reads them. Without it `nvidia-smi` tells memory and load, which takes
longer, and the other readings are unknown.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from tilewright.evaluator.devices.devices import nvidia_smi

REASONS = {
    0x1: "idle",
    0x2: "application clocks",
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x20: "thermal (software)",
    0x40: "thermal (hardware)",
    0x80: "power brake",
}
"""nvmlClocksEventReasons of nvml.h, those that a reader of times wants to know."""


@dataclass(frozen=True)
class Conditions:
    """The state of a GPU at one moment; `None` where the driver does not say."""

    sm_mhz: int | None = None
    memory_mhz: int | None = None
    celsius: int | None = None
    milliwatts: int | None = None
    reasons: tuple[str, ...] = ()
    used_bytes: int | None = None
    """Device memory in use, by whomever."""
    total_bytes: int | None = None
    busy_percent: int | None = None
    """Share of the last second or so in which some kernel ran."""


def _library() -> Any:  # noqa: ANN401 - an optional module
    with suppress(ImportError):
        import pynvml

        with suppress(pynvml.NVMLError):
            pynvml.nvmlInit()
            return pynvml
    return None


def conditions(uuid: str) -> Conditions | None:
    """Return the state of the GPU of this UUID, or `None` where the driver does not answer."""
    nvml = _library()
    if nvml is None:
        return _listed(uuid)

    read = partial(_read, nvml)
    device = read("nvmlDeviceGetHandleByUUID", uuid)
    if device is None:
        return None
    mask = read("nvmlDeviceGetCurrentClocksThrottleReasons", device) or 0
    memory = read("nvmlDeviceGetMemoryInfo", device)
    load = read("nvmlDeviceGetUtilizationRates", device)
    return Conditions(
        sm_mhz=read("nvmlDeviceGetClockInfo", device, nvml.NVML_CLOCK_SM),
        memory_mhz=read("nvmlDeviceGetClockInfo", device, nvml.NVML_CLOCK_MEM),
        celsius=read("nvmlDeviceGetTemperature", device, nvml.NVML_TEMPERATURE_GPU),
        milliwatts=read("nvmlDeviceGetPowerUsage", device),
        reasons=tuple(text for bit, text in REASONS.items() if mask & bit),
        used_bytes=memory and memory.used,
        total_bytes=memory and memory.total,
        busy_percent=load and load.gpu,
    )


def device_processes(uuid: str) -> dict[int, int]:
    """Return the bytes of the GPU of this UUID that each process holds, by its number.

    It is empty where the driver does not answer, and lacks processes of which it tells no size.
    """
    nvml = _library()
    device = nvml and _read(nvml, "nvmlDeviceGetHandleByUUID", uuid)
    if device is None:
        return {}
    found = _read(nvml, "nvmlDeviceGetComputeRunningProcesses", device) or []
    return {item.pid: item.usedGpuMemory for item in found if item.usedGpuMemory is not None}


@dataclass(frozen=True)
class Settings:
    """How a GPU is set up; `None` where the driver does not say."""

    persistence: bool | None = None
    """Whether the driver stays loaded between programs."""
    mig: bool | None = None
    """Whether the GPU is divided into instances (MIG)."""
    locked_mhz: int | None = None
    """The clock that applications are locked to, if it is below the highest."""
    highest_mhz: int | None = None


def device_settings(uuid: str) -> Settings | None:
    """Return how the GPU of this UUID is set up, or `None` without `nvidia-ml-py`."""
    nvml = _library()
    if nvml is None:
        return None
    read = partial(_read, nvml)
    device = read("nvmlDeviceGetHandleByUUID", uuid)
    if device is None:
        return None
    persistence, mig = (
        read("nvmlDeviceGetPersistenceMode", device),
        read("nvmlDeviceGetMigMode", device),
    )
    highest = read("nvmlDeviceGetMaxClockInfo", device, nvml.NVML_CLOCK_SM)
    clock_mhz = read("nvmlDeviceGetApplicationsClock", device, nvml.NVML_CLOCK_SM)
    return Settings(
        persistence=None if persistence is None else bool(persistence),
        mig=None if mig is None else bool(mig[0]),
        locked_mhz=clock_mhz
        if clock_mhz is not None and highest is not None and clock_mhz < highest
        else None,
        highest_mhz=highest,
    )


def _read(nvml: Any, name: str, *arguments: object) -> Any:  # noqa: ANN401 - numbers, or structures
    with suppress(nvml.NVMLError):
        return getattr(nvml, name)(*arguments)
    return None


def _listed(uuid: str) -> Conditions | None:
    rows = nvidia_smi("uuid", "memory.used", "memory.total", "utilization.gpu")
    for numbers in (row[1:] for row in rows if row[0] == uuid):
        used, total, busy = (int(text) if text.isdecimal() else None for text in numbers)
        used_bytes, total_bytes = (mib and mib << 20 for mib in (used, total))
        return Conditions(used_bytes=used_bytes, total_bytes=total_bytes, busy_percent=busy)
    return None
