"""The files and resources that each child may use, as plain values for the forkserver."""

from __future__ import annotations

import os
import site
import sys
import sysconfig
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # A supervisor starts its forkserver before it imports these.
    from tilewright.evaluator.devices.devices import Device
    from tilewright.records import Limits

SYSTEM_PATHS = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/alternatives",
    "/etc/localtime",
    "/sys/devices/system/cpu",
    "/sys/devices/system/node",
)
FIRST_UID = 61184
"""Children are numbered from here. The range is what systemd sets aside for dynamic users."""
FILE_BYTES = 1 << 30
DRIVER_BYTES, DRIVER_THREADS = 64 << 30, 64
"""Private memory that CUDA maps, and threads that it starts, in addition to the candidate's own."""
DESCRIPTORS = 256
OPENBLAS_THREADS = 8
STEADY_MALLOC = {
    "GLIBC_TUNABLES": f"glibc.malloc.trim_threshold={1 << 36}:"
    f"glibc.malloc.mmap_threshold={29 << 20}:"
    f"glibc.malloc.top_pad={1 << 20}:glibc.malloc.hugetlb=1"
}
"""Freed memory stays mapped, and large blocks lie on huge pages, in every child alike. With glibc's
defaults the same call takes a third longer or not. That depends on whether its output must be
faulted in anew, and on where its small pages happen to lie. A block of `mmap_threshold` or
more is always faulted in. That threshold is no size in use, and the heap has too little spare
memory for such a block (ADR 38)."""
ALL_LAYERS = "all"


def python_paths() -> tuple[str, ...]:
    """Return the folders from which this interpreter imports, without tilewright's own source."""
    candidates = {
        sys.prefix,
        sys.base_prefix,
        os.path.dirname(os.path.realpath(sys.executable)),
        *site.getsitepackages(),
        sysconfig.get_paths()["purelib"],
        sysconfig.get_paths()["platlib"],
        # Of another environment, on whose packages this one stands by a .pth file.
        *(path for path in sys.path if path.endswith(("/site-packages", "/dist-packages"))),
    }
    existing = {Path(os.path.abspath(path)) for path in candidates if os.path.isdir(path)}
    return tuple(sorted(str(path) for path in existing if existing.isdisjoint(path.parents)))


def is_hidden_module(name: str) -> bool:
    """Tell whether this process imports a module from a folder that the sandbox does not show."""
    first = name.partition(".")[0]
    if not first.isidentifier():
        return False
    shown = {Path(path) for path in python_paths()}
    folders = [Path(os.path.abspath(path)) for path in sys.path if path]
    # A candidate chooses the name, and a file system may refuse to look for it.
    with suppress(OSError):
        return any(
            (folder / first).is_dir() or (folder / f"{first}.py").is_file()
            for folder in folders
            if shown.isdisjoint((folder, *folder.parents))
        )
    return False


def forkserver_environment(extra: dict[str, str]) -> dict[str, str]:
    """Return the whole environment of the forkserver, built from an allow-list."""
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path and os.path.isdir(path)),
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_WAIT_POLICY": "PASSIVE",
        **STEADY_MALLOC,
        **extra,
        # torch.utils.cpp_extension asks whether there is a device, and the driver's way of finding
        # out would start CUDA here, with a thread. Children see theirs by their own environment.
        "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
        "CUDA_VISIBLE_DEVICES": "",
        # It would warn on the user's terminal that there is none.
        "TORCH_LOGS": "-torch.utils.cpp_extension",
    }


def child_environment(extra: dict[str, str]) -> dict[str, str]:
    """Return the environment that a confined child sees."""
    folders = [os.path.dirname(sys.executable), "/usr/local/bin", "/usr/bin", "/bin"]
    if "CUDA_HOME" in extra:
        folders.append(f"{extra['CUDA_HOME']}/bin")
    return {
        "PATH": ":".join(folders),
        "LANG": "C.UTF-8",
        "HOME": "/tmp",
        # The uid has no name here, and some libraries ask for one.
        "USER": "candidate",
        "LOGNAME": "candidate",
        "TMPDIR": "/tmp",
        "OMP_WAIT_POLICY": "PASSIVE",
        # Its workers would start beside what is timed, and their threads count among the limits.
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
        "TRITON_CACHE_DIR": "/tmp/triton",
        "TORCHINDUCTOR_CACHE_DIR": "/tmp/inductor",
        **extra,
    }


def confinement(  # noqa: PLR0913 - each is read by another layer
    slot: int,
    limits: Limits,
    memory_bytes: int,
    *,
    cores: tuple[int, ...],
    threads: int,
    device: Device,
    skipped_pids: int = 0,
    extra_paths: tuple[str, ...] = (),
    layers: tuple[str, ...] = (ALL_LAYERS,),
) -> dict[str, Any]:
    """Return the values of a `Confinement` for one child."""
    view = (*SYSTEM_PATHS, *python_paths(), *device.paths, *extra_paths)
    if device.is_gpu:
        # The driver maps far more than it uses; the supervisor looks at what is resident.
        memory_bytes += DRIVER_BYTES
    return {
        "read_only": [path for path in view if os.path.exists(path)],
        "writable_tmp_bytes": limits.tmpfs_bytes,
        "uid": FIRST_UID + slot,
        "memory_bytes": memory_bytes,
        "file_bytes": FILE_BYTES,
        "processes": limits.processes + (DRIVER_THREADS if device.is_gpu else 0),
        "descriptors": DESCRIPTORS,
        "core": list(cores) or None,
        "environment": child_environment(
            {
                **device.environment,
                "OMP_NUM_THREADS": str(threads),
                # It starts its threads when numpy is imported, and interrupts a process that may
                # not have as many.
                "OPENBLAS_NUM_THREADS": str(min(threads, OPENBLAS_THREADS)),
            }
        ),
        "devices": list(device.nodes),
        "skipped_pids": skipped_pids,
        "layers": list(layers),
    }
