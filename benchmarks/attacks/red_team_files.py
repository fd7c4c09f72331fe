"""The files of the red-team suite `tests/attacks`, and those that its generators write."""

from __future__ import annotations

import hashlib
import importlib
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from benchmarks.attacks.corpus_files import CorpusFile, read_header
from benchmarks.bars import ROOT
from tilewright.records import Problem

__all__ = ["FAMILIES", "SUITE", "GeneratedCase", "SuiteFile", "changed_since", "read_suite"]

SUITE = ROOT / "tests" / "attacks"
KINDS = ("attacks", "honest")
SUFFIXES = (".py", ".cpp", ".cu")
FAMILIES = {
    "A": "timed inputs that follow from earlier ones",
    "B": "a difference between timed and checked calls",
    "C": "outputs in memory that is not the candidate's own work",
    "D": "code of tilewright in the runner process",
    "E": "tolerances that admit less work",
    "F": "problems with a constant output",
    "G": "library code that does the work",
    "H": "limits of memory and time",
    "I": "honest candidates that a check might refuse",
    "J": "two figures of one report that disagree",
    "K": "the GPU: streams, half precision, stale graphs, skipped work",
}
"""Letter of each family, and what its attacks abuse."""

ABOVE = {
    *("cli", "integrations", "client.py", "serve", "rl", "reports", "loop"),
    *("knowledge", "testing"),
}
"""Parts of tilewright that use the judge; its own source imports none of them (pyproject.toml)."""


@dataclass(frozen=True)
class GeneratedCase:
    """An attack, its honest counterpart and their problem, as a generator writes them.

    An honest candidate that might be refused has no attack.

    `name` is the stem of all files. Both candidates begin with the header of a file of the
    suite, with `problem: NAME` and, in the attack, `counterpart: NAME.py`.
    """

    name: str
    problem: str
    attack: str | None
    honest: str


@dataclass(frozen=True)
class SuiteFile:
    """One candidate of the suite: an attack or an honest file."""

    kind: str
    file: CorpusFile

    @property
    def path(self) -> Path:
        return self.file.path

    @property
    def name(self) -> str:
        """Return its name in tables: kind, and file name."""
        return f"{self.kind}/{self.path.name}"

    @property
    def family(self) -> str:
        return self.file.keys.get("family", "")

    @property
    def devices(self) -> tuple[str, ...]:
        return tuple(part.strip() for part in self.file.keys.get("device", "cpu").split(","))

    @property
    def settings(self) -> tuple[str, ...]:
        """Return the settings of its header, each `PATH=VALUE`."""
        return tuple(self.file.keys.get("settings", "").split())

    @property
    def python_path(self) -> tuple[str, ...]:
        """Return the folder of packages that it may import."""
        name = self.file.keys.get("python_path")
        return (str(self.path.parent.parent / name),) if name else ()

    @property
    def counterpart(self) -> Path | None:
        """Return the honest counterpart of an attack, or None where its header names no file."""
        name = self.file.keys.get("counterpart", "none")
        if name == "reference" or name.startswith("none"):
            return None
        return self.path.parent.parent / "honest" / name

    @property
    def has_gain(self) -> bool:
        """Tell whether it is an attack whose gain can be measured."""
        named = self.file.keys.get("counterpart", "none")
        return self.kind == "attacks" and not named.startswith("none")

    @cached_property
    def problem(self) -> Problem:
        """Return its problem.

        Raises:
            ProblemError: there is no such problem.
        """
        return self.file.problem()

    def sources(self) -> list[Path]:
        """Return the files on which its verdict and its gain depend."""
        places = [self.path, *([self.counterpart] if self.counterpart else [])]
        own = self.path.parent.parent / "problems" / f"{self.file.keys['problem']}.py"
        found = [file for place in places for file in _files(place)]
        return found + ([own] if own.is_file() else [])

    def digest(self, *more: str) -> str:
        """Return a digest of all its sources, and of `more`."""
        return _digest([*self.sources()], more)


def _files(place: Path) -> list[Path]:
    return sorted(p for p in place.rglob("*") if p.is_file()) if place.is_dir() else [place]


def _digest(files: Iterable[Path], more: Sequence[str] = ()) -> str:
    made = hashlib.sha256("\0".join(more).encode())
    for path in files:
        made.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return made.hexdigest()[:16]


def source_digest() -> str:
    """Return a digest of the source on which a verdict depends."""
    source = ROOT / "src" / "tilewright"
    found = (p for p in source.rglob("*") if p.suffix in (".py", ".cpp", ".h", ".c"))
    return _digest(sorted(p for p in found if p.relative_to(source).parts[0] not in ABOVE))


def read_suite(folder: Path = SUITE) -> list[SuiteFile]:
    """Read the attacks and honest files below `folder`, by name.

    A candidate that is a folder has its header in the file with the folder's name.

    Raises:
        ConfigError: a file has no header.
    """
    found = []
    for kind in KINDS:
        for path in sorted((folder / kind).glob("*")):
            if path.is_dir() and path.name != "__pycache__":
                inner = read_header(path / f"{path.name}.py")
                found.append(SuiteFile(kind, replace(inner, path=path)))
            elif path.suffix in SUFFIXES:
                found.append(SuiteFile(kind, read_header(path)))
    return found


def generators() -> list[str]:
    """Return the names of the generators."""
    names = (path.stem for path in (SUITE / "generators").glob("*.py"))
    return sorted(name for name in names if not name.startswith("_"))


def write_generated(seed: int, folder: Path) -> list[SuiteFile]:
    """Write the cases of all generators into `folder`, and read them as a suite."""
    for kind in (*KINDS, "problems"):
        (folder / kind).mkdir(parents=True, exist_ok=True)
    for name in generators():
        module = importlib.import_module(f"tests.attacks.generators.{name}")
        for case in module.generate(seed):
            (folder / "problems" / f"{case.name}.py").write_text(case.problem, encoding="utf-8")
            (folder / "honest" / f"{case.name}.py").write_text(case.honest, encoding="utf-8")
            if case.attack is not None:
                attack = folder / "attacks" / f"{case.name}.py"
                attack.write_text(case.attack, encoding="utf-8")
    return read_suite(folder)


def changed_since(reference: str) -> set[Path]:
    """Return the files of the suite that differ from a commit, with those unknown to git."""
    commands = (
        ["git", "diff", "--name-only", reference, "--", str(SUITE)],
        ["git", "ls-files", "--others", "--exclude-standard", "--full-name", "--", str(SUITE)],
    )
    names: list[str] = []
    for command in commands:
        answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        names += answer.stdout.splitlines()
    return {ROOT / name for name in names}
