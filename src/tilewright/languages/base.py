"""The interface of a language: how its candidates are recognised, built and loaded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, runtime_checkable

from tilewright.errors import ConfigError
from tilewright.languages.cpp_lexer import compiled_units
from tilewright.languages.extensions import extension_calls
from tilewright.languages.syntax import is_python, parse_modules
from tilewright.records import Candidate, Record, SourceFile

SOURCE_SUFFIXES = (".py", ".cpp", ".cc", ".cxx", ".cu", ".cuh", ".h", ".hpp")
"""Endings of files that a candidate may consist of."""


class BuildPlan(Record):
    """The sources to compile before a candidate can be loaded, and its loader.

    The digest covers these fields. A cache of builds must add the versions of compiler and torch,
    and the processor that `-march=native` means.
    """

    kind: Literal["none", "c_abi", "extension"]
    """`extension`: the module itself calls `load_inline` or `load` when the build process imports
    it, so that only that process knows the sources."""
    loader: str
    """Module of `tilewright.runner.loaders` that loads the candidate."""
    command: tuple[str, ...] = ()
    """Compiler and flags of `c_abi`, without sources, include folders and output. `{arch}` is a
    placeholder for the device's architecture, as `sm_90`."""
    units: tuple[str, ...] = ()
    """Paths among `sources` that `c_abi` passes to the compiler."""
    sources: tuple[SourceFile, ...] = ()
    """Every file that the build reads."""

    def compiler(self, arch: str = "") -> tuple[str, ...]:
        """Return `command` with the device's architecture filled in."""
        return tuple(part.replace("{arch}", arch) for part in self.command)


@runtime_checkable
class Language(Protocol):
    """One way to write a candidate. A plug-in of the group `tilewright.languages`."""

    @property
    def name(self) -> str:
        """The value of `Candidate.language` and `--language`."""

    @property
    def suffixes(self) -> tuple[str, ...]:
        """Endings that the name of a candidate's first file may have."""

    @property
    def loader(self) -> str:
        """The loader of a first file with the first of `suffixes`; a plan may name another."""

    def matches(self, files: Sequence[SourceFile]) -> bool:
        """Tell whether the files look like this language."""

    def plan(self, candidate: Candidate) -> BuildPlan:
        """Return the build plan of a candidate.

        Raises:
            ConfigError: the first file cannot be of this language.
        """


def python_plan(candidate: Candidate, language: str) -> BuildPlan:
    """Plan a candidate whose first file is Python: an extension if it builds one, else nothing."""
    first = candidate.files[0]
    if not is_python(first):
        raise ConfigError(f"{first.path}: a {language} candidate starts with a .py file")
    if any(extension_calls(module) for module in parse_modules(candidate.files)):
        return BuildPlan(kind="extension", loader="python", sources=candidate.files)
    return BuildPlan(kind="none", loader="python")


def native_plan(
    candidate: Candidate, language: str, suffixes: tuple[str, ...], command: tuple[str, ...]
) -> BuildPlan:
    """Plan a candidate in a compiled language: its own file by the C ABI, or a Python file."""
    first = candidate.files[0]
    if is_python(first):
        return python_plan(candidate, language)
    if not first.path.endswith(suffixes):
        wanted = ", ".join((*suffixes, ".py"))
        raise ConfigError(f"{first.path}: a {language} candidate starts with one of {wanted}")
    # The first file is the judged one, so it is compiled even if another file includes it.
    units = dict.fromkeys((first.path, *compiled_units(candidate.files, suffixes)))
    return BuildPlan(
        kind="c_abi", loader="c_abi", command=command, units=tuple(units), sources=candidate.files
    )
