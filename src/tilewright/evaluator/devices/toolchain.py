"""The inputs of a build other than the candidate: this machine's compiler, processor, headers."""

from __future__ import annotations

import platform
import shutil
import subprocess
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

HEADER = Path(__file__).parents[2] / "runner" / "loaders" / "tilewright.h"
"""The header that C++ and CUDA candidates include."""


@cache
def headers() -> list[str]:
    """Return what a build includes: the text of our header, Python's and torch's versions."""
    torch = ""
    with suppress(PackageNotFoundError):
        torch = version("torch")
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
