"""Triton: Python that imports `triton`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.languages.base import BuildPlan, python_plan
from tilewright.languages.syntax import calls, is_python, parse_modules
from tilewright.records import Candidate, SourceFile

__all__ = ["TRITON", "Triton"]


@dataclass(frozen=True)
class Triton:
    """`@triton.jit` kernels and the function or module that launches them."""

    name: str = "triton"
    suffixes: tuple[str, ...] = (".py",)
    loader: str = "python"

    def matches(self, files: Sequence[SourceFile]) -> bool:
        """Say whether the first file is Python and a Python file imports triton."""
        if not is_python(files[0]):
            return False
        for module in parse_modules(files):
            by_call = (module.imported_by(call) or "" for call in calls(module))
            if any(name.split(".")[0] == "triton" for name in (*module.aliases.values(), *by_call)):
                return True
        return False

    def plan(self, candidate: Candidate) -> BuildPlan:
        """Return what must be built."""
        return python_plan(candidate, self.name)


TRITON = Triton()
