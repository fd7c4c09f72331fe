"""What a language is: how its candidates are recognised, built and loaded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, runtime_checkable

from tilewright.errors import ConfigError
from tilewright.languages.cpp_lexer import compiled_units
from tilewright.languages.extensions import extension_calls
from tilewright.languages.syntax import is_python, parse_modules
from tilewright.records import Candidate, Record, SourceFile

__all__ = ["BuildPlan", "Language", "native_plan", "python_plan"]


class BuildPlan(Record):
    """What must be compiled before a candidate can be loaded, and who loads it then.

    Its digest depends on all of these fields. What the files do not show must be added by
    whoever caches a build: versions of compiler and torch, and the processor that
    `-march=native` stands for.
    """

    kind: Literal["none", "c_abi", "extension"]
    """`extension`: the module itself calls `load_inline` or `load` when it is imported in the
    build sandbox; what it then builds is known there only."""
    loader: str
    """Module of `tilewright.runner.loaders` that loads the candidate."""
    command: tuple[str, ...] = ()
    """Compiler and flags of `c_abi`, without sources, include folders and output; `{arch}`
    stands for the device's architecture, as `sm_90`."""
    units: tuple[str, ...] = ()
    """Paths among `sources` that the compiler of `c_abi` is given."""
    sources: tuple[SourceFile, ...] = ()
    """Every file that the build reads; none where nothing is built."""

    def compiler(self, arch: str = "") -> tuple[str, ...]:
        """Return `command` with the device's architecture filled in."""
        return tuple(part.replace("{arch}", arch) for part in self.command)


@runtime_checkable
class Language(Protocol):
    """One way to write a candidate. A plug-in of the group `tilewright.languages`."""

    @property
    def name(self) -> str:
        """What `Candidate.language` and `--language` say."""

    @property
    def suffixes(self) -> tuple[str, ...]:
        """Endings that the name of a candidate's first file may have."""

    @property
    def loader(self) -> str:
        """The loader of a first file with the first of `suffixes`; a plan may name another."""

    def matches(self, files: Sequence[SourceFile]) -> bool:
        """Say whether the files look like this language."""

    def plan(self, candidate: Candidate) -> BuildPlan:
        """Return what must be built.

        Raises:
            ConfigError: the first file cannot be of this language.
        """


def python_plan(candidate: Candidate, language: str) -> BuildPlan:
    """Plan a candidate whose first file is Python: an extension if it builds one, else nothing.

    Raises:
        ConfigError: the first file is not Python.
    """
    first = candidate.files[0]
    if not is_python(first):
        raise ConfigError(f"{first.path}: a {language} candidate starts with a .py file")
    if any(extension_calls(module) for module in parse_modules(candidate.files)):
        return BuildPlan(kind="extension", loader="python", sources=candidate.files)
    return BuildPlan(kind="none", loader="python")


def native_plan(
    candidate: Candidate, language: str, suffixes: tuple[str, ...], command: tuple[str, ...]
) -> BuildPlan:
    """Plan a candidate in a compiled language: its own file by the C ABI, or a Python file.

    Raises:
        ConfigError: the first file is neither Python nor of this language.
    """
    first = candidate.files[0]
    if is_python(first):
        return python_plan(candidate, language)
    if not first.path.endswith(suffixes):
        wanted = ", ".join((*suffixes, ".py"))
        raise ConfigError(f"{first.path}: a {language} candidate starts with one of {wanted}")
    units = compiled_units(candidate.files, suffixes)
    # The first file is compiled even where another one includes it: it is what is judged.
    units = units if first.path in units else (first.path, *units)
    return BuildPlan(
        kind="c_abi", loader="c_abi", command=command, units=units, sources=candidate.files
    )
