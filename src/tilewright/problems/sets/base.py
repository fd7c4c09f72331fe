"""What a set of problems is: where it is published, and how its files become problems."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from tilewright.errors import ProblemError
from tilewright.records import Problem

__all__ = ["Found", "Hub", "ProblemSet", "json_rows"]


@dataclass(frozen=True)
class Hub:
    """A dataset on the Hugging Face Hub, and the revision that is fetched unless told."""

    dataset: str
    revision: str
    splits: tuple[str, ...]


@dataclass
class Found:
    """The problems in a source, and what could not be read there, each named by file and line."""

    problems: list[Problem] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)


class ProblemSet(Protocol):
    """A benchmark whose problems can be imported."""

    name: str
    about: str
    """One line."""
    hub: Hub | None

    def read(self, source: Path, revision: str) -> Found:
        """Read a clone, a folder or a file of the benchmark.

        Raises:
            ProblemError: nothing of this benchmark is there.
        """


def json_rows(path: Path, skipped: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the objects of a JSON array or of JSON lines, each with where it stands.

    A damaged line is named in `skipped`, and the rest is read.

    Raises:
        ProblemError: the file cannot be read.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ProblemError(f"{path}: cannot be read: {error}") from error
    if text.lstrip().startswith("["):
        yield from _array(path, text, skipped)
        return
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        try:
            row = json.loads(line)
        except ValueError as error:
            skipped.append(f"{where}: not JSON: {error}")
            continue
        if isinstance(row, dict):
            yield where, row
        else:
            skipped.append(f"{where}: not an object")


def _array(path: Path, text: str, skipped: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        rows = json.loads(text)
    except ValueError as error:
        raise ProblemError(f"{path}: not JSON: {error}") from error
    for number, row in enumerate(rows):
        if isinstance(row, dict):
            yield f"{path}[{number}]", row
        else:
            skipped.append(f"{path}[{number}]: not an object")
