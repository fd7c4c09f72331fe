"""The devices that candidates run on: cores of the processor, or one NVIDIA GPU."""

from __future__ import annotations

import glob
import os
import platform
import shutil
import subprocess
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from tilewright.config import environment
from tilewright.errors import ConfigError, InfrastructureError

CONTROL_NODES = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-modeset")
DRIVER_FOLDERS = ("/usr/local/nvidia", "/proc/driver/nvidia")
QUEUES = "CUDA_DEVICE_MAX_CONNECTIONS"
FEW_QUEUES = 2
"""Hardware queues of a process that uses one stream; the driver's own number is eight."""
PASSED = ("LD_LIBRARY_PATH", "TORCH_CUDA_ARCH_LIST", "CUDAHOSTCXX")
"""Variables by which the driver and the host compiler are found on some machines."""
SMALL_MACHINE_CORES = 4
"""Up to this many cores only one is timed; larger machines time on half of their cores."""


@dataclass(frozen=True)
class Device:
    """Where candidates run, and what their processes need for it."""

    name: str
    """`cpu`, or `cuda:N`."""
    model: str
    uuid: str = ""
    driver: str = ""
    arch: str = ""
    """The name that the CUDA compiler gives it, such as `sm_90`."""
    nodes: tuple[str, ...] = ()
    """Device files that the sandbox shows."""
    paths: tuple[str, ...] = ()
    """Folders that the sandbox shows in addition to the usual ones."""
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def is_gpu(self) -> bool:
        """Tell whether it is a GPU."""
        return self.name != "cpu"


def _processor_model() -> str:
    with suppress(OSError), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()


CPU = Device(
    "cpu", _processor_model(), environment={"TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": ""}
)


def find_device(name: str) -> Device:
    """Return the device called `cpu`, `cuda` or `cuda:N`.

    Raises:
        ConfigError: devices have other names.
        InfrastructureError: this machine has none of that name; the message says what it has.
    """
    if name == "cpu":
        return CPU
    kind, _, number = name.partition(":")
    if kind != "cuda" or not (number or "0").isdecimal():
        raise ConfigError(f"device {name!r} is unknown; known: cpu, cuda, cuda:N")
    found = gpus()
    index = int(number or 0)
    if index not in found:
        has = ", ".join(f"cuda:{i} ({row[2]})" for i, row in found.items()) or "no NVIDIA GPU"
        raise InfrastructureError(
            f"unjudged: no device: {name} is not here; this machine has {has}; "
            "--device cpu judges without a GPU"
        )
    _, uuid, model, driver, capability = found[index]
    own = f"/dev/nvidia{index}"
    nodes = (own,) if os.path.exists(own) else tuple(sorted(glob.glob("/dev/nvidia[0-9]*")))
    return Device(
        name=f"cuda:{index}",
        model=model,
        uuid=uuid,
        driver=driver,
        arch="sm_" + capability.replace(".", ""),
        nodes=(*(path for path in CONTROL_NODES if os.path.exists(path)), *nodes),
        paths=tuple(path for path in DRIVER_FOLDERS if os.path.exists(path)),
        environment={
            "CUDA_VISIBLE_DEVICES": uuid,
            "CUDA_CACHE_PATH": "/tmp/cuda",
            **environment(PASSED),
            **_toolkit(),
        },
    )


def few_queues(device: Device) -> Device:
    """Return a GPU as a process sees it that uses one stream.

    The time to make and to end a context depends on its number of queues. With two of them it is
    about half as long. The contexts of all GPUs of a host are made one after another (ADR 30).
    """
    return replace(device, environment={**device.environment, QUEUES: str(FEW_QUEUES)})


def gpu_names() -> dict[str, str]:
    """Return the UUID of each GPU of this machine, by name (`cuda:N`)."""
    return {f"cuda:{index}": row[1] for index, row in gpus().items()}


def _toolkit() -> dict[str, str]:
    """Return where the CUDA compiler lies, as torch's own builds want to know it."""
    compiler = shutil.which("nvcc")
    return {"CUDA_HOME": str(Path(compiler).resolve().parents[1])} if compiler else {}


@cache
def gpus() -> dict[int, list[str]]:
    """Return the GPUs of this machine, by index."""
    rows = nvidia_smi("index", "uuid", "name", "driver_version", "compute_cap")
    return {int(row[0]): row for row in rows if row[0].isdecimal()}


def nvidia_smi(*fields: str) -> list[list[str]]:
    """Return these fields of each GPU that the driver's own tool lists, memory in MiB."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return []
    command = [tool, f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    except subprocess.TimeoutExpired:
        return []
    rows = [[part.strip() for part in line.split(",")] for line in done.stdout.splitlines()]
    return [row for row in rows if len(row) == len(fields)]


@dataclass(frozen=True)
class Cores:
    """The split of the cores. All timed runners share one set, on which nothing else runs."""

    runners: tuple[int, ...]
    judge: tuple[int, ...]

    @property
    def threads(self) -> int:
        """Return the number of threads that each timed runner gets."""
        return len(self.runners)

    @property
    def separate(self) -> bool:
        """Tell whether the clock has a core of its own; without one no time is reported."""
        return not set(self.runners) & set(self.judge)


def plan_cores(available: list[int]) -> Cores:
    """Split the cores: one for the runners on small machines, else half of them."""
    ordered = sorted(available)
    count = 1 if len(ordered) <= SMALL_MACHINE_CORES else len(ordered) // 2
    return Cores(tuple(ordered[:count]), tuple(ordered[count:] or ordered))
