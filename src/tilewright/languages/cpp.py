"""C++: a `.cpp` file with the C ABI of `tilewright.h`, or Python that builds an extension."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.languages.base import BuildPlan, native_plan
from tilewright.languages.extensions import extension_calls
from tilewright.languages.syntax import parse_modules
from tilewright.records import Candidate, SourceFile

__all__ = ["CPP", "Cpp"]

_SUFFIXES = (".cpp", ".cc", ".cxx")
_COMMAND = ("g++", "-O3", "-march=native", "-fopenmp", "-shared", "-fPIC", "-std=c++17")


@dataclass(frozen=True)
class Cpp:
    """A C ABI kernel or a C++ extension."""

    name: str = "cpp"
    suffixes: tuple[str, ...] = (*_SUFFIXES, ".py")
    loader: str = "c_abi"

    def matches(self, files: Sequence[SourceFile]) -> bool:
        """Say whether there is a C++ file, or a call that builds C++ sources."""
        return any(file.path.endswith(_SUFFIXES) for file in files) or any(
            extension_calls(module) for module in parse_modules(files)
        )

    def plan(self, candidate: Candidate) -> BuildPlan:
        """Return what must be built."""
        return native_plan(candidate, self.name, _SUFFIXES, _COMMAND)


CPP = Cpp()
