"""Which libraries are installed, in which version, and why one is left out."""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.machinery import PathFinder
from typing import Any

from benchmarks.audit.libraries import Library


@dataclass(frozen=True)
class Installation:
    """The installed version of a library, or the reason why it is not judged."""

    library: Library
    version: str | None
    reason: str = ""
    """Why it is not judged; empty: it is."""

    def row(self) -> dict[str, Any]:
        """Return the row of the results file."""
        return {
            "kind": "library",
            "library": self.library.name,
            "wanted": self.library.version,
            "version": self.version,
            "reason": self.reason,
        }


def find(library: Library, folders: Sequence[str]) -> Installation:
    """Look for a library in `folders`, and then among the installed packages."""
    path = [*folders, *sys.path]
    found = importlib.metadata.distributions(name=library.name, path=path)
    version = next((each.version for each in found), None)
    if version is None:
        return Installation(library, None, f"{library.name} is not installed")
    if version != library.version:
        wanted = f"the adapter is for {library.version}"
        return Installation(library, version, f"{library.name} {version} is installed; {wanted}")
    missing = [
        name
        for name in (library.module, *library.needs)
        if PathFinder.find_spec(name, path) is None
    ]
    if missing:
        reason = f"{library.name} needs modules that are missing: {', '.join(missing)}"
        return Installation(library, version, reason)
    return Installation(library, version)
