"""Which clock times the calls of a device, one at a time."""

from __future__ import annotations

from tilewright.evaluator.devices.devices import Device
from tilewright.evaluator.timing.cpu_clock import HostClock
from tilewright.evaluator.timing.gpu_clock import CudaEventClock

__all__ = ["Clock", "clock_of"]

Clock = HostClock | CudaEventClock


def clock_of(device: Device) -> Clock:
    """Return the clock of a device."""
    return CudaEventClock() if device.is_gpu else HostClock()
