"""Plain PyTorch: any Python file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.languages.base import BuildPlan, python_plan
from tilewright.languages.syntax import is_python
from tilewright.records import Candidate, SourceFile

__all__ = ["TORCH", "Torch"]


@dataclass(frozen=True)
class Torch:
    """Python that needs no kernel of its own."""

    name: str = "torch"
    suffixes: tuple[str, ...] = (".py",)
    loader: str = "python"

    def matches(self, files: Sequence[SourceFile]) -> bool:
        """Say whether the first file is Python."""
        return is_python(files[0])

    def plan(self, candidate: Candidate) -> BuildPlan:
        """Return what must be built."""
        return python_plan(candidate, self.name)


TORCH = Torch()
