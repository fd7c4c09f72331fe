"""This machine's compiler, processor and headers, and the allocator library built with them."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import MappingProxyType

from tilewright.errors import InfrastructureError

HEADER = Path(__file__).parents[2] / "runner" / "loaders" / "tilewright.h"
"""The header that C++ and CUDA candidates include."""
POOL_SOURCE = Path(__file__).parents[2] / "runner" / "native" / "pool.cpp"
"""With this library a runner allocates inside the judge's block."""


@cache
def installed_versions() -> Mapping[str, str]:
    """Return the versions of those packages that decide about a verdict and are installed."""
    found = {}
    for name in ("torch", "triton", "numpy", "tilewright"):
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return MappingProxyType(found)


@cache
def headers() -> list[str]:
    """Return what a build includes: the text of our header, Python's and torch's versions."""
    torch = installed_versions().get("torch", "")
    return [HEADER.read_text(encoding="ascii"), platform.python_version(), torch]


@cache
def toolchain() -> str:
    """Return the first line of `g++ --version`, or an empty text."""
    path = shutil.which("g++")
    if path is None:
        return ""
    done = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    return done.stdout.partition("\n")[0]


@cache
def processor() -> str:
    """Return the meaning of `-march=native` here: model and flags of the first core."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            lines = file.read().split("\n\n")[0].splitlines()
    except OSError:
        return platform.machine()
    kept = ("model name", "flags", "Features", "CPU part")
    return "\n".join(line for line in lines if line.startswith(kept))


def pool_library(home: Path) -> Path:
    """Return the path of the built library; raise `InfrastructureError` without a C++ compiler."""
    text = POOL_SOURCE.read_bytes()
    path = home / "native" / f"pool-{hashlib.sha256(text).hexdigest()[:16]}.so"
    if path.exists():
        return path
    compiler = shutil.which("g++")
    if compiler is None:
        raise InfrastructureError("judging on a GPU needs g++, which is not installed")
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(f".{os.getpid()}")
    command = [compiler, "-O2", "-shared", "-fPIC", "-std=c++17"]
    command += [str(POOL_SOURCE), "-o", str(fresh), "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise InfrastructureError(f"{POOL_SOURCE.name} cannot be built: {done.stderr[:500]}")
    fresh.chmod(0o755)
    fresh.rename(path)
    return path
