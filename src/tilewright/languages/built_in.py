"""The built-in languages: plain PyTorch, Triton, C++ and CUDA."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.languages.base import BuildPlan, Language, native_plan, python_plan
from tilewright.languages.extensions import extension_calls
from tilewright.languages.syntax import calls, is_python, parse_modules
from tilewright.records import Candidate, SourceFile

__all__ = ["BUILT_IN", "CPP", "CUDA", "TORCH", "TRITON"]

_CPP_SUFFIXES = (".cpp", ".cc", ".cxx")
_CPP_COMMAND = ("g++", "-O3", "-march=native", "-fopenmp", "-shared", "-fPIC", "-std=c++17")
_CUDA_COMMAND = (
    "nvcc", "-O3", "-arch={arch}", "-Xcompiler", "-fPIC,-fopenmp", "-shared", "-std=c++17",
)  # fmt: skip


@dataclass(frozen=True)
class Torch:
    """Python that needs no kernel of its own."""

    name: str = "torch"
    suffixes: tuple[str, ...] = (".py",)
    loader: str = "python"

    def matches(self, files: Sequence[SourceFile]) -> bool:
        """Tell whether the first file is Python."""
        return is_python(files[0])

    def plan(self, candidate: Candidate) -> BuildPlan:
        """Return the plan of an extension, or of no build."""
        return python_plan(candidate, self.name)


@dataclass(frozen=True)
class Triton(Torch):
    """`@triton.jit` kernels and the function or module that launches them."""

    name: str = "triton"

    def matches(self, files: Sequence[SourceFile]) -> bool:
        """Tell whether the first file is Python and a Python file imports triton."""
        if not is_python(files[0]):
            return False
        for module in parse_modules(files):
            by_call = (module.imported_by(call) or "" for call in calls(module))
            if any(name.split(".")[0] == "triton" for name in (*module.aliases.values(), *by_call)):
                return True
        return False


@dataclass(frozen=True)
class Cpp:
    """A C ABI kernel or a C++ extension."""

    name: str = "cpp"
    suffixes: tuple[str, ...] = (*_CPP_SUFFIXES, ".py")
    loader: str = "c_abi"

    def matches(self, files: Sequence[SourceFile]) -> bool:
        """Tell whether there is a C++ file, or a call that builds C++ sources."""
        return any(file.path.endswith(_CPP_SUFFIXES) for file in files) or any(
            extension_calls(module) for module in parse_modules(files)
        )

    def plan(self, candidate: Candidate) -> BuildPlan:
        """Return the plan of a C ABI library or of an extension."""
        return native_plan(candidate, self.name, _CPP_SUFFIXES, _CPP_COMMAND)


@dataclass(frozen=True)
class Cuda:
    """A CUDA extension, or a `.cu` file that exports the function of `tilewright.h`."""

    name: str = "cuda"
    suffixes: tuple[str, ...] = (".cu", ".cpp", ".py")
    loader: str = "c_abi"

    def matches(self, files: Sequence[SourceFile]) -> bool:
        """Tell whether there is a `.cu` file, or a call that builds CUDA sources."""
        return any(file.path.endswith(".cu") for file in files) or any(
            call.cuda for module in parse_modules(files) for call in extension_calls(module)
        )

    def plan(self, candidate: Candidate) -> BuildPlan:
        """Return the plan of a C ABI library or of an extension."""
        return native_plan(candidate, self.name, (".cu", ".cpp"), _CUDA_COMMAND)


CPP = Cpp()
CUDA = Cuda()
TORCH = Torch()
TRITON = Triton()

BUILT_IN: tuple[Language, ...] = (TRITON, CUDA, CPP, TORCH)
"""The built-in languages, in the order in which detection tries them."""
