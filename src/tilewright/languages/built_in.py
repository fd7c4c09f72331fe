"""The built-in languages: plain PyTorch, Triton, C++ and CUDA."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.languages.actions import Action, native_actions, python_actions
from tilewright.languages.base import BuildPlan, Language, native_plan, python_plan
from tilewright.languages.extensions import extension_calls
from tilewright.languages.syntax import Module, calls, is_python, parse_module, parse_modules
from tilewright.records import Candidate, SourceFile


@dataclass(frozen=True)
class Torch:
    """Python that needs no kernel of its own."""

    name: str = "torch"
    suffixes: tuple[str, ...] = (".py",)
    loader: str = "python"

    def matches(self, files: Sequence[SourceFile]) -> bool:
        return is_python(files[0])

    def plan(self, candidate: Candidate) -> BuildPlan:
        return python_plan(candidate, self.name)

    def actions(self, code: str) -> tuple[Action, ...]:
        """Return the legal optimisations of a program, see `ActionSource`."""
        return python_actions(code)


HOST_NAMES = frozenset({"cdiv", "next_power_of_2", "testing", "__version__"})
"""Names of triton that code without a kernel uses."""


def _uses_triton(module: Module) -> bool:
    names = {
        name
        for name, full in module.aliases.items()
        if full.split(".")[0] == "triton" and not HOST_NAMES & {*full.split(".")[1:]}
    }
    on_host = {
        id(node.value)
        for node in module.nodes
        if isinstance(node, ast.Attribute) and node.attr in HOST_NAMES
    }
    by_call = (module.imported_by(call) or "" for call in calls(module))
    return any(
        isinstance(node, ast.Name) and node.id in names and id(node) not in on_host
        for node in module.nodes
    ) or any(name.split(".")[0] == "triton" for name in by_call)


@dataclass(frozen=True)
class Triton(Torch):
    """`@triton.jit` kernels and the function or module that launches them."""

    name: str = "triton"

    def matches(self, files: Sequence[SourceFile]) -> bool:
        """Tell whether the first file is Python and a Python file uses triton.

        A file that only imports it has no kernel, and would be rejected for launching none.
        """
        return is_python(files[0]) and any(_uses_triton(module) for module in parse_modules(files))


@dataclass(frozen=True)
class Cpp:
    """A C ABI kernel or a C++ extension."""

    name: str = "cpp"
    suffixes: tuple[str, ...] = (".cpp", ".cc", ".cxx", ".py")
    loader: str = "c_abi"
    marks: tuple[str, ...] = (".cpp", ".cc", ".cxx")
    """Endings of a file that shows the language, whatever else is there."""
    command: tuple[str, ...] = (
        "g++", "-O3", "-march=native", "-fopenmp", "-shared", "-fPIC", "-std=c++17",
    )  # fmt: skip

    def matches(self, files: Sequence[SourceFile]) -> bool:
        """Tell whether a file has one of `marks`, or builds an extension of this language."""
        return any(file.path.endswith(self.marks) for file in files) or any(
            call.cuda or self.name != "cuda"
            for module in parse_modules(files)
            for call in extension_calls(module)
        )

    def plan(self, candidate: Candidate) -> BuildPlan:
        return native_plan(candidate, self.name, self.suffixes[:-1], self.command)

    def actions(self, code: str) -> tuple[Action, ...]:
        """Return the legal optimisations of a C++ file, or of a Python file that builds one."""
        return (
            native_actions(code)
            if not isinstance(parse_module("candidate.py", code), Module)
            else python_actions(code)
        )


@dataclass(frozen=True)
class Cuda(Cpp):
    """A CUDA extension, or a `.cu` file that exports the function of `tilewright.h`."""

    name: str = "cuda"
    suffixes: tuple[str, ...] = (".cu", ".cpp", ".py")
    marks: tuple[str, ...] = (".cu",)
    command: tuple[str, ...] = (
        "nvcc", "-O3", "-arch={arch}", "-Xcompiler", "-fPIC,-fopenmp", "-shared", "-std=c++17",
    )  # fmt: skip


CPP, CUDA, TORCH, TRITON = Cpp(), Cuda(), Torch(), Triton()

BUILT_IN: tuple[Language, ...] = (TRITON, CUDA, CPP, TORCH)
"""The built-in languages, in the order in which detection tries them."""
