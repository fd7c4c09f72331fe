"""A census: the recorded verdicts of all programs of a space on one device.

The file has one JSON document a line: a header, then a line for each evaluation, in the order in
which they ended. A line that a killed process left unfinished is the last one, and is ignored. A
file whose name ends with `.gz` is compressed.
"""

from __future__ import annotations

import gzip
import json
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import Field, JsonValue

from tilewright.errors import RecordError
from tilewright.records.base import Record, digest_text
from tilewright.records.field_faults import damage_of
from tilewright.records.outcome import Label, Outcome
from tilewright.records.report import EvalReport, Profile, ReportEnvironment
from tilewright.records.request import Protocol, Rules, TimingPlan

MAX_MESSAGE_CHARS = 400
"""Characters of a message that a census keeps: more of a compiler's output repeats itself."""


def source_digest(text: str) -> str:
    """Return the digest by which a program is known: blank ends of its lines do not count."""
    lines = text.replace("\r\n", "\n").strip().split("\n")
    return digest_text("\n".join(line.rstrip() for line in lines))


class CensusHeader(Record):
    """The first line: the space, and how and where its programs were judged."""

    version: Literal[1] = 1
    """Version of the format."""
    space: str
    problem: str
    """Id of the problem."""
    reference: str
    """Digest of the problem's source."""
    programs: int = Field(ge=1)
    """Number of programs of the space."""
    part: tuple[int, int] = (0, 1)
    """Number of this part, and the number of parts. `(0, 1)`: all programs."""
    protocol: Protocol
    baselines: tuple[str, ...]
    rules: Rules
    timing: TimingPlan
    environment: ReportEnvironment
    method: Literal["host_clock", "cuda_events_trusted", "cuda_events_candidate"]
    """Clock of the times."""
    evaluator: str
    """Version of tilewright."""
    date: str


class MeasuredCase(Record):
    """The times of one case against one baseline."""

    case: str
    baseline: str
    baseline_us: float = Field(gt=0)
    candidate_us: float = Field(gt=0)
    speedup: float = Field(gt=0)
    low: float | None = Field(default=None, gt=0)
    high: float | None = Field(default=None, gt=0)
    blocks: int = Field(ge=1)


class CensusRow(Record):
    """One evaluation of one program."""

    program: str
    """Digest of its source (`source_digest`)."""
    knobs: dict[str, JsonValue]
    outcome: Outcome
    seconds: float = Field(ge=0)
    """Wall time of the evaluation, without the wait for the device."""
    speedup: float | None = Field(default=None, gt=0)
    low: float | None = Field(default=None, gt=0)
    high: float | None = Field(default=None, gt=0)
    cases: tuple[MeasuredCase, ...] = ()
    labels: tuple[Label, ...] = ()
    profile: Profile | None = None


@dataclass(frozen=True)
class Census:
    """The rows of a census, by program."""

    header: CensusHeader
    digest: str
    """Digest of the file's text."""
    rows: dict[str, tuple[CensusRow, ...]] = field(default_factory=dict)


def line_of(record: CensusHeader | CensusRow) -> str:
    """Return a record as a line of a census; fields with their default are left out."""
    document = record.model_dump(mode="json", exclude_defaults=True)
    if isinstance(record, CensusRow):
        # Without its verdict an outcome could not be read again.
        document["outcome"] = {"verdict": record.outcome.verdict, **document["outcome"]}
    return json.dumps(document, separators=(",", ":")) + "\n"


def read_census(path: Path) -> Census:
    """Read a census.

    Raises:
        RecordError: the file cannot be read, is damaged, or has no header.
    """
    try:
        data = path.read_bytes()
        text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise RecordError(f"census {path}: cannot be read: {damage_of(error)}") from error
    lines = text.split("\n")
    # The last line is empty, or was not finished.
    whole = [(number, line) for number, line in enumerate(lines[:-1], start=1) if line]
    if not whole:
        raise RecordError(f"census {path}: it has no header")
    rows: dict[str, tuple[CensusRow, ...]] = {}
    number = whole[0][0]
    try:
        header = CensusHeader.from_json(whole[0][1])
        for number, line in whole[1:]:  # noqa: B007 - the message below names it
            row = CensusRow.from_json(line)
            rows[row.program] = (*rows.get(row.program, ()), row)
    except RecordError as error:
        raise RecordError(f"census {path}:{number}: {error}") from error
    return Census(header, digest_text(text), rows)


def row_of(program: str, knobs: dict[str, JsonValue], report: EvalReport, waited: str) -> CensusRow:
    """Return the row of a report. `waited` names the stage whose time no evaluation costs."""
    outcome = report.outcome
    if "message" in type(outcome).model_fields:
        message = str(getattr(outcome, "message"))[:MAX_MESSAGE_CHARS]  # noqa: B009 - a union
        outcome = outcome.model_copy(update={"message": message})
    walls = {stage.name: stage.wall_s for stage in report.stages}
    seconds = walls.get("total", 0.0) - walls.get(waited, 0.0)
    return CensusRow(
        program=program,
        knobs=knobs,
        outcome=outcome,
        seconds=round(max(seconds, 0.0), 3),
        speedup=report.speedup,
        low=report.speedup_low,
        high=report.speedup_high,
        cases=tuple(
            MeasuredCase(
                case=item.case,
                baseline=item.baseline,
                baseline_us=item.baseline_us or item.baseline_timing.median_us,
                candidate_us=item.candidate_us or item.candidate.median_us,
                speedup=item.speedup,
                low=item.speedup_low,
                high=item.speedup_high,
                blocks=item.blocks,
            )
            for item in report.comparisons
            if report.speedup is not None
        ),
        labels=report.labels,
        profile=report.profile,
    )
