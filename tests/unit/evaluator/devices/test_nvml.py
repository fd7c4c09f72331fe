"""The report of a GPU's driver, with the package nvidia-ml-py and without it."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from tilewright.evaluator.devices import nvml
from tilewright.evaluator.devices.nvml import (
    Conditions,
    Settings,
    conditions,
    device_processes,
    device_settings,
)


class FakeError(Exception):
    """An answer other than success."""


class FakePackage:
    """The functions of pynvml, for one GPU that does not tell its power."""

    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0
    NVMLError = FakeError

    def __init__(self, *, driver: bool = True, clock: int = 1980) -> None:
        self.driver, self.clock = driver, clock

    def nvmlInit(self):
        if not self.driver:
            raise FakeError

    def __getattr__(self, name):
        def answer(*arguments):
            if arguments[0] == "GPU-of-nobody" or name == "nvmlDeviceGetPowerUsage":
                raise FakeError
            return {
                "nvmlDeviceGetHandleByUUID": "handle",
                "nvmlDeviceGetClockInfo": 1000 * arguments[-1] if arguments[-1] in (1, 2) else 0,
                "nvmlDeviceGetTemperature": 40,
                "nvmlDeviceGetMemoryInfo": SimpleNamespace(used=5 << 20, total=9 << 30),
                "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=0),
                "nvmlDeviceGetCurrentClocksThrottleReasons": 0x4 | 0x20 | 0x1000,
                "nvmlDeviceGetPersistenceMode": 1,
                "nvmlDeviceGetMigMode": [0, 0],
                "nvmlDeviceGetMaxClockInfo": 1980,
                "nvmlDeviceGetApplicationsClock": self.clock,
                "nvmlDeviceGetComputeRunningProcesses": [
                    SimpleNamespace(pid=11, usedGpuMemory=3 << 30),
                    SimpleNamespace(pid=12, usedGpuMemory=None),
                ],
            }[name]

        return answer


@pytest.fixture
def listing(monkeypatch):
    """Answer for nvidia-smi; a test may change the rows."""
    rows = [["GPU-aa", "1500", "144000", "[N/A]"], ["GPU-bb", "0", "24000", "7"]]
    monkeypatch.setattr(nvml, "nvidia_smi", lambda *_: rows)
    return rows


def test_the_package_reports_all_that_the_driver_answers(listing, monkeypatch):  # noqa: ARG001
    monkeypatch.setitem(sys.modules, "pynvml", FakePackage())
    assert conditions("GPU-aa") == Conditions(
        sm_mhz=1000,
        memory_mhz=2000,
        celsius=40,
        milliwatts=None,
        reasons=("power cap", "thermal (software)"),
        used_bytes=5 << 20,
        total_bytes=9 << 30,
        busy_percent=0,
    )
    assert conditions("GPU-of-nobody") is None


@pytest.mark.parametrize(
    "package", [None, FakePackage(driver=False)], ids=["no package", "no NVML"]
)
def test_without_the_package_memory_and_load_are_known(package, listing, monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", package)
    assert conditions("GPU-aa") == Conditions(used_bytes=1500 << 20, total_bytes=144000 << 20)
    assert conditions("GPU-bb") == Conditions(used_bytes=0, total_bytes=24000 << 20, busy_percent=7)
    assert conditions("GPU-of-nobody") is None
    listing.clear()
    assert conditions("GPU-aa") is None


@pytest.mark.parametrize(("clock", "locked"), [(1980, None), (1500, 1500)])
def test_the_package_reports_how_a_gpu_is_set_up(clock, locked, monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", FakePackage(clock=clock))
    found = Settings(persistence=True, mig=False, locked_mhz=locked, highest_mhz=1980)
    assert device_settings("GPU-aa") == found
    assert device_settings("GPU-of-nobody") is None
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert device_settings("GPU-aa") is None


def test_processes_are_listed_with_what_they_hold(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", FakePackage())
    assert device_processes("GPU-aa") == {11: 3 << 30}
    assert device_processes("GPU-of-nobody") == {}
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert device_processes("GPU-aa") == {}
