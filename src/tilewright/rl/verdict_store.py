"""Verdicts of programs in one file, so that a training evaluates no program a second time.

The key of a verdict is the canonical program and the problem. The key of the file adds
protocol, rules, version of the evaluator and model of the device. Both are coarser than the key by
which `bench --reuse` finds a report, which covers the whole environment.

The file is JSON lines, compressed with gzip. The first line holds the key of the file, the number
of the other lines and their digest.
"""

from __future__ import annotations

import gzip
import hashlib
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from tilewright.errors import ConfigError, RecordError, writing
from tilewright.loop.estimates import WORST_FIRST
from tilewright.records import Problem, Protocol, Rules
from tilewright.records.base import Record, digest_text
from tilewright.records.events import EvalSummary
from tilewright.records.field_faults import first_fault

MAX_BYTES = 4 << 20
"""Most bytes of the compressed file: a study moves between machines as a few small files."""
GZIP = 31
"""The window of zlib for a file of gzip."""
UNPACKED = 256
"""Bytes that are unpacked at once."""
SYNTHETIC = "synthetic"
"""The evaluator of verdicts that a formula computed, and the beginning of its device's name."""


class StoreKey(Record):
    """The protocol, rules, evaluator and device that all verdicts of a store have in common."""

    protocol: Protocol = "strict"
    rules: Rules = Rules()
    evaluator: str
    """Version of tilewright, or `synthetic`."""
    device: str
    """Model of the device."""

    @property
    def is_synthetic(self) -> bool:
        """Whether a formula computed the verdicts."""
        return self.evaluator == SYNTHETIC


class StoredVerdict(Record):
    """One evaluation of one program."""

    problem: str
    problem_digest: str
    code: str
    """The canonical text of the program."""
    summary: EvalSummary
    synthetic: bool = False


class _Head(Record):
    format: Literal[1] = 1
    key: StoreKey
    count: int = Field(ge=0)
    sha256: str


class VerdictStore:
    """Evaluations by problem and program. Lifetime: one run; safe to use from several threads."""

    def __init__(self, path: Path, key: StoreKey) -> None:
        self.path, self.key = path, key
        self._lock = threading.Lock()
        self._rows: dict[tuple[str, str], list[StoredVerdict]] = {}

    @classmethod
    def read(cls, path: Path, key: StoreKey | None = None) -> VerdictStore:
        """Return the store in a file, or an empty one if there is no file and `key` is given.

        Raises:
            ConfigError: there is no such file, or it holds verdicts under another key.
            RecordError: the file is damaged, or two verdicts of one program contradict each other.
        """
        if not path.exists():
            if key is None:
                raise ConfigError(f"{path}: no such file; name a store of verdicts")
            return cls(path, key)
        head, lines = _read(path)
        if key is not None and key != head.key:
            raise ConfigError(f"{path}: {_difference(head.key, key)}; verdicts are never mixed")
        made = cls(path, head.key)
        for number, line in enumerate(lines, start=2):
            try:
                row = StoredVerdict.model_validate_json(line)
            except ValidationError as error:
                raise RecordError(f"{path}:{number}: {first_fault(error)}") from error
            made._add(row, f"{path}:{number}")
        return made

    def __len__(self) -> int:
        """Return the number of different programs."""
        return len(self._rows)

    def rows(self) -> Iterator[StoredVerdict]:
        """Yield all evaluations; those of a program stand together."""
        with self._lock:
            rows = [row for found in self._rows.values() for row in found]
        yield from rows

    def evaluations(self, problem: Problem, code: str) -> tuple[EvalSummary, ...]:
        """Return the evaluations of a program in canonical text; none if it was not evaluated."""
        with self._lock:
            found = self._rows.get((problem.digest(), digest_text(code)), [])
            return tuple(row.summary for row in found)

    def add(self, problem: Problem, code: str, summary: EvalSummary) -> None:
        """Add an evaluation; `unjudged` says nothing of a program, so it is refused.

        Raises:
            RecordError: it contradicts an earlier evaluation of the program.
            ValueError: the summary is no verdict.
        """
        if summary.verdict == "unjudged":
            raise ValueError(f"{problem.id}: an unjudged program has no verdict to store")
        row = StoredVerdict(
            problem=problem.id,
            problem_digest=problem.digest(),
            code=code,
            # The store leaves the run folder behind.
            summary=summary.model_copy(update={"report": ""}),
            synthetic=self.key.is_synthetic,
        )
        with self._lock:
            self._add(row, str(self.path))

    def _add(self, row: StoredVerdict, where: str) -> None:
        known = self._rows.setdefault((row.problem_digest, digest_text(row.code)), [])
        if known and known[0].summary.verdict != row.summary.verdict:
            raise RecordError(
                f"{where}: program {digest_text(row.code)[:12]} for {row.problem} is "
                f"{row.summary.verdict} here and {known[0].summary.verdict} in an earlier line"
            )
        known.append(row)

    def save(self) -> None:
        """Write the file; a reader sees the old one or the new one.

        Raises:
            ConfigError: it cannot be written, or it would be larger than `MAX_BYTES`.
        """
        body = "".join(f"{row.model_dump_json(exclude_defaults=True)}\n" for row in self.rows())
        text, count = body.encode(), body.count("\n")
        head = _Head(key=self.key, count=count, sha256=hashlib.sha256(text).hexdigest())
        # Without the time, equal verdicts give equal files.
        data = gzip.compress(f"{head.model_dump_json()}\n".encode() + text, mtime=0)
        if len(data) > MAX_BYTES:
            size = f"{len(data) / 2**20:.1f} MiB, more than {MAX_BYTES >> 20} MiB"
            raise ConfigError(f"{self.path}: {count} verdicts take {size}; begin another store")
        fresh = self.path.with_suffix(".new")
        with writing(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            fresh.write_bytes(data)
            fresh.replace(self.path)


def agreeing(evaluations: tuple[EvalSummary, ...]) -> tuple[EvalSummary, ...]:
    """Return the evaluations of one program that a store may hold together: those of one verdict.

    If the verdicts differ, only those of the worst one stay: a program that is correct now and
    then is not correct. `unjudged` says nothing of a program, so any other verdict replaces it.
    """
    made = {item.verdict for item in evaluations}
    worst = next((verdict for verdict in WORST_FIRST if verdict in made), "unjudged")
    return tuple(item for item in evaluations if item.verdict == worst)


def chosen(evaluations: tuple[EvalSummary, ...], ask_id: str) -> EvalSummary:
    """Return the evaluation of a program that a turn gets, by a hash of the turn's request.

    Repeated trials differ by noise. A policy that always got the same one could fit this noise.
    """
    digest = hashlib.blake2b(ask_id.encode(), digest_size=8).digest()
    return evaluations[int.from_bytes(digest, "big") % len(evaluations)]


def _read(path: Path) -> tuple[_Head, list[bytes]]:
    first, _, rest = _unpacked(path).partition(b"\n")
    try:
        head = _Head.model_validate_json(first)
    except ValidationError as error:
        raise RecordError(f"{path}:1: {first_fault(error)}") from error
    lines = rest.splitlines()
    if len(lines) != head.count or hashlib.sha256(rest).hexdigest() != head.sha256:
        raise RecordError(
            f"{_damage(path, rest)}: its first line promises {head.count} verdicts with digest "
            f"{head.sha256[:12]}, and the other {len(lines)} lines are different"
        )
    return head, lines


def _unpacked(path: Path) -> bytes:
    """Return the text of a store, or raise `RecordError` with the line at which it breaks off."""
    unpacker, text, reason = zlib.decompressobj(GZIP), b"", "the file ends too early"
    try:
        data = path.read_bytes()
        # In small parts, so that all before the damage is known.
        for start in range(0, len(data), UNPACKED):
            text += unpacker.decompress(data[start : start + UNPACKED])
    except (OSError, zlib.error) as error:
        reason = str(error)
    if not unpacker.eof:
        _, ended, rest = text.partition(b"\n")
        place = _damage(path, rest) if ended else f"{path}:1"
        raise RecordError(f"{place}: a damaged or truncated store: {reason}")
    return text


def _damage(path: Path, body: bytes) -> str:
    """Return the place of the first line that is no verdict, and the program of the line before."""
    known, number = "", 2
    for line in body.splitlines():
        try:
            row = StoredVerdict.model_validate_json(line)
        except ValidationError:
            break
        known = f" after program {digest_text(row.code)[:12]} for {row.problem}"
        number += 1
    return f"{path}:{number}{known}"


def _difference(has: StoreKey, wanted: StoreKey) -> str:
    """Return the fields of two keys that differ, with both values."""
    parts = [
        f"its {name} is {getattr(has, name)!s}, and {getattr(wanted, name)!s} is wanted"
        for name in StoreKey.model_fields
        if getattr(has, name) != getattr(wanted, name)
    ]
    return "; ".join(parts)
