"""From a path or a text to a `Candidate`: its files, language and entry point."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from tilewright.errors import ConfigError, close_name, reason_of
from tilewright.languages.base import SOURCE_SUFFIXES
from tilewright.languages.detect import MissingEntry, detect, find_entry, main_first, rivals
from tilewright.languages.syntax import Unparseable
from tilewright.records import Candidate, Failed, Problem, SourceFile
from tilewright.records.base import is_text
from tilewright.records.codes import FailureReason, Stage
from tilewright.records.field_faults import damage_of

MAX_BYTES = 16 << 20
"""Bytes of a source file: 16 MiB is beyond any candidate, and still fits a frame."""
MAX_FOLDER_BYTES = 16 << 20
"""Bytes of all files of a folder: they travel together."""
MAX_ENTRIES = 1000
"""Files and folders in a candidate's folder: more are a mistake, such as a home folder."""
MIN_SIMILARITY = 0.75
"""Least similarity of a suggested file name; below it, short names are similar by chance."""
MAX_LISTED = 3
"""Files that a message names."""
ALONE = "name a folder with nothing but the candidate's files"


def read_files(path: str) -> tuple[SourceFile, ...]:
    """Return the files at `path`: a file, a folder, or `-` for standard input."""
    if path == "-":
        text = sys.stdin.read()
        name = "candidate.cpp" if 'extern "C"' in text and "import " not in text else "candidate.py"
        return (SourceFile(path=name, text=text),)
    where = Path(path)
    if os.path.isdir(where):
        return _read_folder(where)
    try:
        where.stat()
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: {reason_of(error)}; {_advice(where)}") from error
    return (_read(where, where.name),)


def read_candidate(path: str, entry: str) -> tuple[SourceFile, ...]:
    """Return the files at `path`, which are one candidate for a problem with this entry point.

    Raises:
        ConfigError: it cannot be read, or it is a folder of several candidates.
    """
    files = read_files(path)
    if several := rivals(files, entry):
        listed = ", ".join(several[:MAX_LISTED]) + (", ..." if len(several) > MAX_LISTED else "")
        raise ConfigError(
            f"{path}: a folder is one candidate, and {listed} are candidates of their own; name "
            f"one file, or give `bench` a folder of {Path(path).name}.0.py, {Path(path).name}.1.py"
        )
    return files


def _advice(missing: Path) -> str:
    """Return the most similar source file in the folder of a missing one, or what to give."""
    try:
        beside = [item for item in missing.parent.iterdir() if item.suffix in SOURCE_SUFFIXES]
    except OSError:
        beside = []
    # Without the endings, which make any two names similar.
    near = {item.stem: item for item in beside}
    if found := close_name(missing.stem, near, MIN_SIMILARITY):
        return f"did you mean {near[found]}?"
    return "name a source file, a folder, or - for stdin"


def _read_folder(folder: Path) -> tuple[SourceFile, ...]:
    """Return the source files of a folder, and its data files."""
    found, size = [], 0
    for file in _listed(folder):
        name = file.relative_to(folder).as_posix()
        item = _read(file, name) if file.suffix in SOURCE_SUFFIXES else _read_data(file, name)
        size += len(item.text.encode())
        found.append(item)
        if size > MAX_FOLDER_BYTES:
            raise ConfigError(f"{folder}: more than {MAX_FOLDER_BYTES >> 20} MiB; {ALONE}")
    if not any(Path(item.path).suffix in SOURCE_SUFFIXES for item in found):
        endings = ", ".join(SOURCE_SUFFIXES)
        raise ConfigError(f"{folder}: no source file in it; their names end in {endings}")
    return tuple(found)


def _listed(folder: Path) -> list[Path]:
    """Return the regular files of a folder in order; refuse anything that cannot be copied."""
    home, found, entries, left = folder.resolve(), [], 0, [folder]
    while left:
        here = left.pop()
        try:
            with os.scandir(here) as listing:
                for entry in listing:
                    entries += 1
                    if entries > MAX_ENTRIES:
                        text = f"more than {MAX_ENTRIES} files and folders; {ALONE}"
                        raise ConfigError(f"{folder}: {text}")
                    if entry.name == "__pycache__" or entry.name.startswith("."):
                        continue
                    item = Path(entry.path)
                    _refuse_foreign(entry, item, home)
                    if entry.is_dir(follow_symlinks=False):
                        left.append(item)
                    elif entry.is_file():
                        found.append(item)
        except OSError as error:
            raise ConfigError(f"{here}: cannot be listed: {error.strerror}") from error
    return sorted(found)


def _refuse_foreign(entry: os.DirEntry[str], path: Path, home: Path) -> None:
    """Refuse a name that is no text, a link out of the folder, and anything but files."""
    if not is_text(entry.name):
        raise ConfigError(f"{str(path)!r}: its name is not UTF-8; rename it")
    # A link out of the folder would copy files of this machine into the sandbox.
    if entry.is_symlink() and not path.resolve().is_relative_to(home):
        raise ConfigError(f"{path}: a link out of the folder; put a copy of the file there")
    if not (entry.is_file() or entry.is_dir()):
        raise ConfigError(f"{path}: neither a file nor a folder; remove it")


def _read_data(path: Path, name: str) -> SourceFile:
    """Return a data file, which a candidate may open."""
    try:
        return SourceFile.of_bytes(name, _bytes_of(path))
    except ValueError as error:
        raise ConfigError(f"{path}: {damage_of(error)}") from error


def _read(path: Path, name: str) -> SourceFile:
    try:
        text = _bytes_of(path).decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
        return SourceFile(path=name, text=text)
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: {reason_of(error)}") from error
    except ValueError as error:
        raise ConfigError(f"{path}: {damage_of(error)}") from error


def _bytes_of(path: Path) -> bytes:
    """Return what a file holds; no more than the limit is read of a device or a growing file."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {reason_of(error)}") from error
    if len(data) > MAX_BYTES:
        raise ConfigError(f"{path}: larger than {MAX_BYTES >> 20} MiB")
    return data


def _given_modules(files: tuple[SourceFile, ...], problem: Problem) -> tuple[SourceFile, ...]:
    """Return the modules of the problem that the candidate names and does not bring itself."""
    own = {file.path for file in files}
    return tuple(
        file
        for file in problem.candidate_files
        if file.path not in own
        and any(re.search(rf"\b{Path(file.path).stem}\b", item.text) for item in files)
    )


def make_candidate(
    files: tuple[SourceFile, ...],
    problem: Problem,
    *,
    language: str | None = None,
    entry: str | None = None,
    allow_imports: tuple[str, ...] = (),
) -> Candidate | tuple[Candidate, Failed]:
    """Return the candidate in `files`, and a failure too if it cannot be used.

    Its Python does not parse then, or it lacks its entry point.
    """
    expected = entry or problem.entry
    files = main_first(files, expected)
    files = (*files, *_given_modules(files, problem))
    name = detect(files, language)
    found: str | Unparseable | MissingEntry = name
    if isinstance(name, str):
        found = find_entry(files, problem.entry, entry, problem.aliases)
    if isinstance(found, Unparseable | MissingEntry):
        parsed = isinstance(found, MissingEntry)
        spoken = str(name) if parsed else language or "torch"
        candidate = Candidate(language=spoken, files=files, entry=expected)
        reason = FailureReason.MISSING_ENTRY if parsed else FailureReason.SYNTAX_ERROR
        message = f"{found.path}: {found.message}"
        return candidate, Failed(stage=Stage.BUILD, reason=reason, message=message)
    return Candidate(language=str(name), files=files, entry=found, allow_imports=allow_imports)
