"""CUDA: a `.cu` file, or Python that builds a CUDA extension."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.languages.base import BuildPlan, native_plan
from tilewright.languages.extensions import extension_calls
from tilewright.languages.syntax import parse_modules
from tilewright.records import Candidate, SourceFile

__all__ = ["CUDA", "Cuda"]

_SUFFIXES = (".cu",)
_COMMAND = (
    "nvcc", "-O3", "-arch={arch}", "-Xcompiler", "-fPIC,-fopenmp", "-shared", "-std=c++17",
)  # fmt: skip


@dataclass(frozen=True)
class Cuda:
    """A CUDA extension, or a `.cu` file that exports the function of `tilewright.h`."""

    name: str = "cuda"
    suffixes: tuple[str, ...] = (*_SUFFIXES, ".cpp", ".py")
    loader: str = "c_abi"

    def matches(self, files: Sequence[SourceFile]) -> bool:
        """Say whether there is a `.cu` file, or a call that builds CUDA sources."""
        return any(file.path.endswith(_SUFFIXES) for file in files) or any(
            call.cuda for module in parse_modules(files) for call in extension_calls(module)
        )

    def plan(self, candidate: Candidate) -> BuildPlan:
        """Return what must be built."""
        return native_plan(candidate, self.name, (*_SUFFIXES, ".cpp"), _COMMAND)


CUDA = Cuda()
