"""From a path or a text to a `Candidate`: its files, language and entry point."""

from __future__ import annotations

import sys
from pathlib import Path

from tilewright.errors import ConfigError
from tilewright.languages.base import SOURCE_SUFFIXES
from tilewright.languages.detect import detect, find_entry, main_first
from tilewright.languages.syntax import Unparseable
from tilewright.records import Candidate, Failed, Problem, SourceFile
from tilewright.records.codes import FailureReason, Stage

MAX_BYTES = 16 << 20
"""Bytes of a source file: 16 MiB is beyond any candidate, and still fits a frame."""


def read_files(path: str) -> tuple[SourceFile, ...]:
    """Return the source files at `path`: a file, a folder, or `-` for standard input."""
    if path == "-":
        text = sys.stdin.read()
        name = "candidate.cpp" if 'extern "C"' in text and "import " not in text else "candidate.py"
        return (SourceFile(path=name, text=text),)
    where = Path(path)
    if where.is_dir():
        found = sorted(p for p in where.rglob("*") if p.is_file() and p.suffix in SOURCE_SUFFIXES)
        if not found:
            endings = ", ".join(SOURCE_SUFFIXES)
            raise ConfigError(f"{path}: the folder holds no source file ({endings})")
        home = where.resolve()
        for file in found:
            # A link out of the folder would copy files of this machine into the sandbox.
            if not file.resolve().is_relative_to(home):
                raise ConfigError(f"{file}: a link out of the folder; put a copy of the file there")
        return tuple(_read(file, file.relative_to(where).as_posix()) for file in found)
    if not where.exists():
        raise ConfigError(f"{path}: no such file; give a source file, a folder, or - for stdin")
    return (_read(where, where.name),)


def _read(path: Path, name: str) -> SourceFile:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ConfigError(f"{path}: larger than {MAX_BYTES >> 20} MiB")
        return SourceFile(path=name, text=path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read as text: {error}") from error
    except ValueError as error:
        raise ConfigError(f"{path}: {error}") from error


def make_candidate(
    files: tuple[SourceFile, ...],
    problem: Problem,
    *,
    language: str | None = None,
    entry: str | None = None,
    allow_imports: tuple[str, ...] = (),
) -> Candidate | tuple[Candidate, Failed]:
    """Return the candidate in `files`, and a failure too if its Python does not parse."""
    expected = entry or problem.entry
    files = main_first(files, expected)
    name = found = detect(files, language)
    if isinstance(name, str):
        found = find_entry(files, name, problem.entry, entry, problem.aliases)
    if isinstance(found, Unparseable):
        candidate = Candidate(language=language or "torch", files=files, entry=expected)
        message = f"{found.path}: {found.message}"
        return candidate, Failed(
            stage=Stage.BUILD, reason=FailureReason.SYNTAX_ERROR, message=message
        )
    return Candidate(language=str(name), files=files, entry=found, allow_imports=allow_imports)
