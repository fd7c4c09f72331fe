"""The best candidates of earlier searches, below `home`, for later ones that ask for them.

A file holds one candidate; its name follows from problem and code, so that equal ones are kept
once. A file appears whole or not at all. A speed-up in it ranks candidates and proves nothing.
"""

from __future__ import annotations

from pathlib import Path

from tilewright.errors import RecordError, writing
from tilewright.records.base import Record, digest_text
from tilewright.records.whole_files import write_whole

FOLDER = "candidates"


class EarlierCandidate(Record):
    """A correct candidate of an earlier search, with what a later one needs to use it."""

    problem: str
    """Digest of its problem."""
    title: str
    """Id of its problem."""
    reference: str
    """Source of its problem's reference, whose words tell what the candidate is good for."""
    code: str
    """Text of the main file."""
    language: str
    speedup: float
    device: str = ""
    """Model of the device that measured it."""
    origin: str
    """Name of the run's folder, and of the request that wrote it."""


def keep(home: Path, candidate: EarlierCandidate) -> Path:
    """Store a candidate, unless the same code is stored with a larger speed-up; return its file.

    Raises:
        ConfigError: the folder cannot be written.
    """
    name = f"{digest_text(candidate.code)[:24]}.json"
    path = home / FOLDER / candidate.problem[:24] / name
    before = _read(path)
    if before is not None and before.speedup >= candidate.speedup:
        return path
    with writing(path):
        write_whole(path, candidate.to_json())
    return path


def kept(home: Path) -> list[EarlierCandidate]:
    """Return the stored candidates in the order of their files; a damaged file is left out."""
    found = (_read(path) for path in sorted((home / FOLDER).glob("*/*.json")))
    return [item for item in found if item is not None]


def _read(path: Path) -> EarlierCandidate | None:
    try:
        return EarlierCandidate.from_json(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, RecordError, ValueError):
        return None
