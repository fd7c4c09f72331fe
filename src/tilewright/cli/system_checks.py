"""Checks of this machine: interpreters, compilers, cores and isolation layers."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tilewright.errors import InfrastructureError
from tilewright.evaluator.devices.devices import find_device
from tilewright.records import EvalReport

__all__ = ["Item", "layer_items", "tool_items"]

MIN_FREE_BYTES = 1 << 30
"""Free disk space below which builds may fail: one Triton or C++ cache takes some 100 MiB."""
AS_ROOT = (
    "run as root, or let this user make user namespaces (sysctl user.max_user_namespaces, "
    "kernel.apparmor_restrict_unprivileged_userns=0); in a container give it CAP_SYS_ADMIN"
)
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
    "landlock": (
        "a second restriction of the file system",
        "Linux 5.13 or newer with landlock among the lsm= of its command line",
    ),
    "seccomp": (
        "candidates without dangerous system calls",
        "a kernel with CONFIG_SECCOMP_FILTER, on x86_64 or aarch64",
    ),
    "process_creation_guard": (
        "CPU time that includes every process of a candidate",
        "Linux 5.7 or newer with CONFIG_SECCOMP_FILTER, on x86_64 or aarch64",
    ),
}


@dataclass(frozen=True)
class Item:
    """One feature; if it is missing, also the benefit and how to get it."""

    name: str
    ok: bool
    detail: str
    enables: str = ""
    get: str = ""


def tool_items(home: Path) -> list[Item]:
    """Return the checks that need no evaluation."""
    return [
        Item("python", True, f"{platform.python_version()} ({sys.executable})"),
        _system(),
        *_packages(),
        *_programs(),
        _gpu(),
        _cores(),
        _space(home),
    ]


def _system() -> Item:
    said = f"{platform.system()} {platform.release()}, {platform.machine()}"
    if sys.platform == "linux":
        return Item("system", True, said)
    return Item("system", False, said, "judging", "use Linux; explain and problems work here")


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
        if path is None:
            yield Item(name, False, "not installed", enables, get)
            continue
        yield Item(name, True, _version_of(path))


def _version_of(path: str) -> str:
    try:
        done = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{path} ({error})"
    lines = [line for line in done.stdout.splitlines() if any(char.isdigit() for char in line)]
    release = [line for line in lines if "release" in line]
    return (release or lines or [path])[0].strip()


def _gpu() -> Item:
    try:
        found = find_device("cuda")
    except InfrastructureError:
        enables = "CUDA candidates, and times of Triton kernels"
        return Item("GPU", False, "none", enables, "an NVIDIA GPU and its driver")
    return Item("GPU", True, f"{found.model}, driver {found.driver}: --device cuda")


def _cores() -> Item:
    if not hasattr(os, "sched_getaffinity"):
        return Item("cores", False, f"{os.cpu_count()} in all", "timing", "use Linux")
    count = len(os.sched_getaffinity(0))
    said = f"{count} of {os.cpu_count()} may be used"
    if count >= 2:
        return Item("cores", True, said)
    return Item("cores", False, said, "timing: the clock needs a core of its own", "a second core")


def _space(home: Path) -> Item:
    place = next(path for path in (home, *home.parents) if path.exists())
    free = shutil.disk_usage(place).free
    said = f"{free / 2**30:.1f} GiB free for {home}"
    writable = os.access(place, os.W_OK)
    if free >= MIN_FREE_BYTES and writable:
        return Item("space", True, said)
    said = said if writable else f"{place} cannot be written"
    return Item("space", False, said, "the cache of builds", "name another folder: --set home=DIR")


def layer_items(report: EvalReport | None) -> list[Item]:
    """Return one row for each isolation layer, as the last evaluation reported it."""
    if report is None or not report.isolation:
        return [Item("isolation", False, "not tried", "isolated candidates", "see `judging`")]
    items = []
    for layer in report.isolation:
        enables, get = LAYERS.get(layer.name, ("stronger isolation", "see the reason given"))
        detail = layer.detail or "active"
        items.append(Item(f"isolation: {layer.name}", layer.active, detail, enables, get))
    return items
