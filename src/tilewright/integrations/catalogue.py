"""The integrations as data: what each maps, and what it refuses. It imports none of them."""

from __future__ import annotations

import importlib.metadata
from dataclasses import dataclass


@dataclass(frozen=True)
class Integration:
    """One integration of another tool."""

    name: str
    tool: str
    package: str
    """Name of the package in an index; empty: the tool is a repository alone."""
    tested: str
    """Version of the tool with which the integration was tested, and how."""
    module: str
    use: str
    """The line or command that a user writes."""
    maps: tuple[str, ...]
    refuses: tuple[str, ...]
    loses: tuple[str, ...]
    """Content of a report for which the tool has no place."""


INTEGRATIONS = (
    Integration(
        name="kernelbench",
        tool="KernelBench",
        package="kernelbench",
        tested="0.2.0.dev0 at 423217d: its analysis script",
        module="tilewright.integrations.kernelbench",
        use="from tilewright.integrations.kernelbench import eval_kernel_against_ref",
        maps=(
            "the arguments and the result of `eval_kernel_against_ref`",
            "run folders with generations, and `eval_results.json`",
        ),
        refuses=(
            "`precision` other than `torch.float32`",
            "`backend` other than `cuda` and `triton`",
            "problems of functions instead of `Model`",
        ),
        loses=(
            "the interval and the findings are in `metadata` alone",
            "`rejected` looks like a wrong output in the fields, and `metadata` tells them apart",
        ),
    ),
    Integration(
        name="pytest",
        tool="pytest",
        package="pytest",
        tested="9.2.0",
        module="tilewright.integrations.pytest_plugin",
        use="@pytest.mark.kernel(problem=...)",
        maps=("a verdict and a requirement as the result of a test",),
        refuses=("figures other than those of the grammar", "positional arguments of the mark"),
        loses=("`incorrect`, `failed` and `rejected` are all a failed test",),
    ),
)


def installed_version(integration: Integration) -> str | None:
    """Return the version of the tool's package in this environment; `None`: it is not here."""
    if not integration.package:
        return None
    try:
        return importlib.metadata.version(integration.package)
    except importlib.metadata.PackageNotFoundError:
        return None
