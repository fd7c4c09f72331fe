"""The driver's readings of a GPU: clocks, heat, throttling, memory, load. No CUDA, no torch."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache

__all__ = ["Conditions", "conditions"]

SM_CLOCK, MEMORY_CLOCK, TEMPERATURE_GPU = 1, 2, 0
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

    sm_mhz: int | None
    memory_mhz: int | None
    celsius: int | None
    milliwatts: int | None
    reasons: tuple[str, ...]
    used_bytes: int | None
    """Device memory in use, by whomever."""
    total_bytes: int | None
    busy_percent: int | None
    """Share of the last second or so in which some kernel ran."""


class _Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong)]
    _fields_ += [("used", ctypes.c_ulonglong)]


class _Utilization(ctypes.Structure):
    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


@cache
def _library() -> ctypes.CDLL | None:
    try:
        library = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return None
    return library if library.nvmlInit_v2() == 0 else None


def conditions(uuid: str) -> Conditions | None:
    """Return the state of the GPU of this UUID, or `None` where NVML does not answer."""
    library = _library()
    device = ctypes.c_void_p()
    if library is None:
        return None
    if library.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(device)):
        return None

    def asked(name: str, *selectors: int) -> int | None:
        value = ctypes.c_ulonglong()
        code = getattr(library, name)(device, *selectors, ctypes.byref(value))
        return None if code else value.value

    memory, busy = _Memory(), _Utilization()
    no_memory = library.nvmlDeviceGetMemoryInfo(device, ctypes.byref(memory))
    no_busy = library.nvmlDeviceGetUtilizationRates(device, ctypes.byref(busy))
    mask = asked("nvmlDeviceGetCurrentClocksThrottleReasons") or 0
    return Conditions(
        sm_mhz=asked("nvmlDeviceGetClockInfo", SM_CLOCK),
        memory_mhz=asked("nvmlDeviceGetClockInfo", MEMORY_CLOCK),
        celsius=asked("nvmlDeviceGetTemperature", TEMPERATURE_GPU),
        milliwatts=asked("nvmlDeviceGetPowerUsage"),
        reasons=tuple(text for bit, text in REASONS.items() if mask & bit),
        used_bytes=None if no_memory else int(memory.used),
        total_bytes=None if no_memory else int(memory.total),
        busy_percent=None if no_busy else int(busy.gpu),
    )
