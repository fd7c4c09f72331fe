"""Checks of a machine: interpreters, compilers, cores, isolation layers; and of a Ray cluster."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilewright._version import __version__
from tilewright.config import Config, environment
from tilewright.errors import InfrastructureError
from tilewright.evaluator.devices.devices import find_device
from tilewright.evaluator.devices.nvml import Settings, device_settings
from tilewright.executors import ray_api
from tilewright.executors.factory import cached_cluster
from tilewright.executors.ray_executor import RayExecutor
from tilewright.integrations.catalogue import (
    INTEGRATIONS,
    allowed_range,
    installed_version,
    remedy,
    state_of,
)
from tilewright.records import EvalReport

SETTLED_S = 4.0
"""Seconds without a new device after which the list of devices is complete."""
MAX_SETTLE_S = 60.0
"""Most seconds that `doctor` waits for devices."""

PROFILING_PARAMETERS = Path("/proc/driver/nvidia/params")
"""The parameters of the loaded driver."""
MPS_PIPE = "/tmp/nvidia-mps"
"""The folder of the control daemon of CUDA MPS, if its environment variable is not set."""
MIN_FREE_BYTES = 1 << 30
"""Free disk space below which builds may fail: one Triton or C++ cache takes some 100 MiB."""
AS_ROOT = (
    "run as root, or let this user make user namespaces (sysctl user.max_user_namespaces, "
    "kernel.apparmor_restrict_unprivileged_userns=0); in a container give it CAP_SYS_ADMIN"
)
LANDLOCK = "Linux 5.13 or newer with landlock among the lsm= of its command line"
SECCOMP = "with CONFIG_SECCOMP_FILTER, on x86_64 or aarch64"
LAYERS: dict[str, tuple[str, str]] = {
    "pid_namespace": ("killing every process that a candidate started", AS_ROOT),
    "ipc_uts_cgroup_namespaces": ("separate System V memory and host names", AS_ROOT),
    "network": ("candidates without network access, even to this machine", AS_ROOT),
    "mount_namespace": ("a file system with only the files that a candidate needs", AS_ROOT),
    "separate_uid": ("a separate user without access to our files", AS_ROOT),
    "file_descriptors": ("candidates without our file descriptors", "mount /proc"),
    "cpu_affinity": ("timed calls on separate cores", "allow sched_setaffinity"),
    "rlimits": ("limits on memory, files and processes", "raise the hard limits (ulimit -H -a)"),
    "environment": ("candidates without your environment variables", "report this as a bug"),
    "landlock": ("a second restriction of the file system", LANDLOCK),
    "seccomp": ("candidates without dangerous system calls", f"a kernel {SECCOMP}"),
    "process_creation_guard": (
        "CPU time that includes every process of a candidate",
        f"Linux 5.7 or newer {SECCOMP}",
    ),
}
"""For each isolation layer: what it enables, and how to get it."""


@dataclass(frozen=True)
class Item:
    """One feature: whether it is there, what it enables, and how to get it."""

    name: str
    ok: bool
    detail: str
    enables: str = ""
    get: str = ""


def tool_items(home: Path) -> list[Item]:
    system, linux = f"{platform.system()} {platform.release()}", sys.platform == "linux"
    python = f"{platform.python_version()} ({sys.executable})"
    use = "use Linux; explain and problems work here"
    return [
        Item("python", True, python),
        Item("system", linux, f"{system}, {platform.machine()}", "judging", use),
        *_packages(),
        *_programs(),
        _gpu(),
        *_gpu_settings(),
        _cores(),
        _space(home),
    ]


def integration_items() -> Iterator[Item]:
    """Yield each integration that needs a package: its version, its state, and the tested range."""
    for item in INTEGRATIONS:
        if item.versions:
            version = installed_version(item)
            state = state_of(item, version)
            found = f"{item.package} {version or ''}".strip()
            detail = f"{found}: {state}; tested with {allowed_range(item)}"
            enables = f"the integration {item.name}"
            yield Item(item.tool, state == "ready", detail, enables, remedy(item))


def _packages() -> Iterator[Item]:
    wanted = (
        ("torch", "judging", "pip install 'tilewright[judge]'"),
        ("numpy", "problems that use it", "pip install 'tilewright[judge]'"),
        ("triton", "Triton candidates, by its interpreter", "pip install 'tilewright[triton]'"),
        ("ninja", "C++ extensions (load_inline)", "pip install 'tilewright[cpp]'"),
    )
    for name, enables, get in wanted:
        try:
            yield Item(name, True, importlib.metadata.version(name))
        except importlib.metadata.PackageNotFoundError:
            found = shutil.which(name) if name == "ninja" else None
            yield Item(name, found is not None, found or "not installed", enables, get)


def _programs() -> Iterator[Item]:
    wanted = (
        ("g++", "C++ candidates", "apt install g++, or the package of your system"),
        ("nvcc", "CUDA candidates", "install the CUDA toolkit"),
    )
    for name, enables, get in wanted:
        path = shutil.which(name)
        found = _version_of(path) if path else "not installed"
        yield Item(name, path is not None, found, enables, get)


def _version_of(path: str) -> str:
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{path} ({error})"
    lines = [line.strip() for line in done.stdout.splitlines() if re.search(r"\d", line)]
    return next((line for line in lines if "release" in line), lines[0] if lines else path)


def _gpu() -> Item:
    try:
        found = find_device("cuda")
    except InfrastructureError:
        enables = "CUDA candidates, and times of Triton kernels"
        return Item("GPU", False, "none", enables, "an NVIDIA GPU and its driver")
    return Item("GPU", True, f"{found.model}, driver {found.driver}: --device cuda")


def _gpu_settings() -> Iterator[Item]:
    """Yield what about the GPU makes times vary, or hides them; nothing without a GPU."""
    with suppress(InfrastructureError):
        found = device_settings(find_device("cuda").uuid)
        if found is None:
            get = "pip install nvidia-ml-py"
            yield Item("GPU settings", False, "unknown", "clocks and modes in reports", get)
        else:
            yield from settings_items(found)
            yield _process_service()
            yield _counters(PROFILING_PARAMETERS)


def settings_items(found: Settings) -> Iterator[Item]:
    """Yield a row for the clocks, the persistence mode and MIG of a GPU."""
    highest = "unknown" if found.highest_mhz is None else f"up to {found.highest_mhz} MHz"
    locked = found.locked_mhz is not None
    said = f"locked to {found.locked_mhz} MHz" if locked else f"not locked, {highest}"
    enables = "times that do not follow heat and power; ratios are paired and need no lock"
    yield Item("GPU clocks", locked, said, enables, "nvidia-smi -lgc MHZ, as root")
    modes = {True: "on", False: "off", None: "unknown"}
    get = "nvidia-smi -pm 1, as root"
    enables = "a first call that does not wait until the driver is loaded"
    yield Item(
        "GPU persistence mode", found.persistence is True, modes[found.persistence], enables, get
    )
    mig = found.mig is True
    enables = "a whole GPU for each evaluation; instances of one GPU share its power and clocks"
    yield Item("GPU without MIG", not mig, modes[found.mig], enables, "nvidia-smi -mig 0, as root")


def _process_service() -> Item:
    """Return whether CUDA MPS is off: under it, kernels of others run at the same time."""
    named = environment(("CUDA_MPS_PIPE_DIRECTORY",))
    pipe = Path(named.get("CUDA_MPS_PIPE_DIRECTORY", MPS_PIPE))
    running = (pipe / "control").exists()
    said = f"its pipe is {pipe}" if running else "off"
    enables = "a device that runs one process at a time"
    return Item(
        "GPU without MPS", not running, said, enables, "echo quit | nvidia-cuda-mps-control"
    )


def _counters(parameters: Path) -> Item:
    """Return whether the driver lets this user read hardware counters, as `ncu` does."""
    try:
        text = parameters.read_text(encoding="utf-8")
    except OSError:
        text = ""
    restricted = re.search(r"RmProfilingAdminOnly:\s*1", text) is not None and os.geteuid() != 0
    program = shutil.which("ncu")
    said = program or "ncu is not installed"
    if restricted:
        said += ", and the driver restricts counters to administrators"
    enables = "hardware counters in your own profiling; tilewright reads none"
    get = "NVreg_RestrictProfilingToAdminUsers=0 for the driver, and Nsight Compute"
    return Item("GPU counters", bool(program) and not restricted, said, enables, get)


def _cores() -> Item:
    enables = "timing: the clock needs a core of its own"
    if sys.platform != "linux":
        return Item("cores", False, f"{os.cpu_count()} in all", enables, "use Linux")
    count = len(os.sched_getaffinity(0))
    said = f"{count} of {os.cpu_count()} may be used"
    return Item("cores", count >= 2, said, enables, "a second core")


def _space(home: Path) -> Item:
    place = next(path for path in (home, *home.parents) if path.exists())
    free = shutil.disk_usage(place).free
    writable = os.access(place, os.W_OK)
    said = f"{free / 2**30:.1f} GiB free for {home}" if writable else f"{place} cannot be written"
    ok, get = writable and free >= MIN_FREE_BYTES, "name another folder: --set home=DIR"
    return Item("space", ok, said, "the cache of builds", get)


def layer_items(report: EvalReport | None) -> list[Item]:
    """Return one row for each isolation layer, as the last evaluation reported it."""
    if report is None or not report.isolation:
        return [Item("isolation", False, "not tried", "isolated candidates", "see `judging`")]
    return [
        Item(f"isolation: {item.name}", item.active, item.detail or "active", *LAYERS[item.name])
        for item in report.isolation
    ]


def cluster_items(settings: Config) -> list[Item]:
    """Lease the free devices, and return a row for each node and each device."""
    executor = cached_cluster(settings)
    _settle(executor)
    members = executor.members()
    items = [_node(item) for item in ray_api.nodes()]
    for item in members:
        said = f"{item['model']}; tilewright {item['tilewright']}, Python {item['python']}, Ray "
        items.append(Item(f"{item['device']} of {item['host']}", True, f"{said}{item['ray']}"))
    same = f"tilewright {__version__}, the same Python, and torch on every node"
    for where, why in executor.refused.items():
        items.append(Item(where, False, why, "one more device", same))
    if not members:
        said = executor.placement_error or "no device is free"
        start = "run `ray start` on a node with a device"
        return [*items, Item("capacity", False, said, "judging", start)]
    models = Counter(item["model"] for item in members)
    shown = ", ".join(f"{count} x {name}" for name, count in models.items())
    said = f"{executor.room()} evaluations at the same time, on {shown}"
    return [*items, Item("capacity", True, said)]


def _settle(executor: RayExecutor) -> None:
    seen, since, limit = -1, time.monotonic(), time.monotonic() + MAX_SETTLE_S
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
