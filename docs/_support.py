"""The page of supported systems: from the requirements, the pins, and the checks of `doctor`."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tilewright.cli.system_checks import LAYERS

ROOT = Path(__file__).resolve().parent.parent
Table = Callable[[tuple[str, ...], Sequence[tuple[str, ...]]], str]
SHOWN = ("torch", "triton", "numpy", "transformers", "trl", "ray", "mcp", "fastapi", "openai")
"""Packages whose versions decide what works."""
SYSTEMS = (
    ("Linux, x86_64", "judging on the CPU and on NVIDIA GPUs, and all other commands"),
    ("Linux, aarch64", "the same; no test runs there"),
    ("Windows with WSL 2", "as Linux"),
    (
        "macOS, Windows",
        "`explain`, `problems`, `report`, `view`, `compare`, and clients of a server",
    ),
)
DEVICES = (
    ("CPU", "Triton by its interpreter, C++ and torch", "at least two cores"),
    (
        "NVIDIA GPU",
        "Triton, CUDA, C++ extensions and torch",
        "a driver that torch supports; nvcc for CUDA",
    ),
    ("AMD, Intel and Apple GPUs", "none: judge on the CPU", "no support"),
)


def page(table: Table) -> str:
    """Return the page."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        project: dict[str, Any] = tomllib.load(file)["project"]
    lowest = dict(_lowest(project))
    pinned = dict(_pins())
    versions = [
        (name, lowest.get(name, ""), pinned.get(name, "")) for name in SHOWN if name in lowest
    ]
    layers = [(f"`{name}`", enables, needs) for name, (enables, needs) in LAYERS.items()]
    return (
        "# Supported systems\n\n"
        "`tilewright doctor` shows what works on a machine, and how to get what is missing.\n"
        "Judging on another system ends with one line and exit code 4.\n\n"
        "## Systems\n\n"
        + table(("system", "what works"), SYSTEMS)
        + "## Devices\n\n"
        + table(("device", "candidates", "needs"), DEVICES)
        + "## Versions\n\n"
        f"Python {project['requires-python']}.\n"
        "Continuous integration installs the tested versions on a CPU.\n"
        "`make oldest-torch` runs the unit tests with the lowest version of torch.\n"
        "The GPU figures in [measurements](../measurements/README.md) name theirs.\n\n"
        + table(("package", "lowest version", "tested version"), versions)
        + "## Isolation\n\n"
        "Judging works without some of these layers, and a report lists the missing ones.\n"
        "`--require-isolation` makes a layer necessary.\n\n"
        + table(("layer", "what it enables", "what it needs"), layers)
    ).rstrip("\n") + "\n"


def _lowest(project: dict[str, Any]) -> list[tuple[str, str]]:
    extras = project["optional-dependencies"].values()
    wanted = [*project["dependencies"], *(item for extra in extras for item in extra)]
    found = []
    for item in wanted:
        name, _, rest = item.partition(">=")
        if rest:
            version = rest.partition(";")[0].partition(",")
            most = f", {version[2].strip()}" if version[2] else ""
            found.append((name.partition("[")[0].strip(), f"{version[0].strip()}{most}"))
    return found


def _pins() -> list[tuple[str, str]]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    found = []
    for line in pins:
        name, equal, version = line.partition("==")
        if not equal:
            # A range: the newest version is the one that is installed.
            name, _, version = line.partition("<=")
            name = name.partition(">=")[0]
        found.append((name, version.strip()))
    return found
