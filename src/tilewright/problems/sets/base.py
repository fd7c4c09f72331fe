"""The interface of a set of problems: its source, and how its files become problems."""

from __future__ import annotations

import json
import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from tilewright.errors import ProblemError, RecordError, reason_of
from tilewright.records import Problem
from tilewright.records.field_faults import damage_of, json_damage
from tilewright.records.parquet import parquet_rows

_DIGITS = re.compile("[0-9]{1,18}")
MAX_ERROR = 300
"""Characters of the message about a row, which may quote the row."""


@dataclass(frozen=True)
class Hub:
    """A dataset on the Hugging Face Hub, and its default revision."""

    dataset: str
    revision: str


@dataclass
class Found:
    """The problems in a source, and messages on its unreadable parts by file and line."""

    problems: list[Problem] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    _known: set[str] = field(default_factory=set, repr=False)

    def add(self, problem: Problem, where: str) -> None:
        """Add a problem; of two with one id the first counts, and a message names the second."""
        if problem.id in self._known:
            self.skipped.append(f"{where}: {problem.id} stands twice; the first one counts")
        else:
            self._known.add(problem.id)
            self.problems.append(problem)

    @contextmanager
    def skipping(self, where: str, what: str = "") -> Iterator[None]:
        """Turn the error of one row or file into a message."""
        try:
            yield
        except ProblemError as error:
            self.skipped.append(str(error))
        except KeyError as error:
            self.skipped.append(f"{where}: wants the field {error}")
        except (OSError, UnicodeDecodeError) as error:
            self.skipped.append(f"{where}: {what}cannot be read: {reason_of(error)}")
        except ValueError as error:
            # A name that no file can have, or that is no text.
            self.skipped.append(f"{where}: {damage_of(error)}")


class ProblemSet(Protocol):
    """A benchmark whose problems can be imported."""

    name: str
    about: str
    repository: str
    """Address of the repository to clone."""
    hub: Hub | None

    def read(self, source: Path, revision: str) -> Found:
        """Read a clone, a folder or a file of the benchmark.

        Raises:
            ProblemError: nothing of this benchmark is there.
        """


def whole_number(value: object) -> int | None:
    """Return a number from 0 on that is written as one, as text, or as pandas writes it (`1.0`)."""
    if isinstance(value, str):
        return int(value) if _DIGITS.fullmatch(value) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if value >= 0 and value == value // 1 else None


def read_rows(path: Path, skipped: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the rows of a file, parquet or else JSON, as `json_rows` does."""
    if path.suffix != ".parquet":
        yield from json_rows(path, skipped)
        return
    try:
        yield from parquet_rows(path, skipped.append)
    except RecordError as error:
        raise ProblemError(str(error)) from error


def json_rows(path: Path, skipped: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the objects of a JSON array or of JSON lines, each with where it stands.

    Each damaged line adds a message to `skipped`; a file that cannot be read raises ProblemError.
    """
    try:
        data = path.read_bytes().removeprefix(BOM_UTF8)
    except OSError as error:
        raise ProblemError(f"{path}: cannot be read: {reason_of(error)}") from error
    if _is_array(data):
        yield from _array(path, data, skipped)
        return
    for number, line in enumerate(data.split(b"\n"), start=1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        try:
            row = json.loads(line.decode())
        except UnicodeDecodeError as error:
            skipped.append(f"{where}: {reason_of(error)}")
        except (ValueError, RecursionError) as error:
            skipped.append(f"{where}: {json_damage(error)}"[:MAX_ERROR])
        else:
            if isinstance(row, dict):
                yield where, row
            else:
                skipped.append(f"{where}: not an object")


def _is_array(data: bytes) -> bool:
    """Tell an array from lines of which the first happens to hold one."""
    first, _, rest = data.lstrip().partition(b"\n")
    if not first.startswith(b"[") or not rest.strip():
        return first.startswith(b"[")
    try:
        json.loads(first.decode(errors="replace"))
    except RecursionError:
        return False
    except ValueError:
        # It goes on in the next line.
        return True
    return False


def _array(path: Path, data: bytes, skipped: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        # A byte that is not UTF-8 costs its row alone.
        rows = json.loads(data.decode(errors="surrogateescape"))
    except (ValueError, RecursionError) as error:
        raise ProblemError(f"{path}: {json_damage(error)}"[:MAX_ERROR]) from error
    for number, row in enumerate(rows):
        where = f"{path}[{number}]"
        if not isinstance(row, dict):
            skipped.append(f"{where}: not an object")
            continue
        try:
            json.dumps(row, ensure_ascii=False).encode()
        except (UnicodeEncodeError, RecursionError):
            skipped.append(f"{where}: not UTF-8")
        else:
            yield where, row
