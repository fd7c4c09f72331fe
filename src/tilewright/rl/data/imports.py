"""Foreign data as a run of ours. Nothing is judged, and memory holds one row at a time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from tilewright._version import __version__
from tilewright.errors import ProblemError, writing
from tilewright.records.base import digest_text
from tilewright.records.event_log import EventLog
from tilewright.records.events import RequestsIssued, RunStarted, TurnFinished
from tilewright.records.field_faults import damage_of
from tilewright.records.run_folder import PROBLEMS
from tilewright.rl.data.drkernel_rows import IMPORTED, Kind, name_of, read_row, turns_from_texts

Row = dict[str, Any]


def import_rows(
    rows: Iterable[tuple[str, Row]],
    folder: Path,
    name: str,
    kind: Kind,
    left_out: Callable[[str], None],
) -> Import:
    """Write rows of a format of Dr. Kernel as a run.

    Rows of `drkernel-coldstart` become turns without a verdict, with their imported prompts. Rows
    of the other formats become problems. `rows` has the position and the content of each row, and
    `name` is that of their source. `left_out` receives a line for each row of another format.
    """
    begun = RunStarted(
        kind="import",
        name=kind,
        problems=name,
        protocols=("strict",),
        evaluator=__version__,
        device="none",
    )
    with (
        writing(folder),
        open(folder / PROBLEMS, "w", encoding="utf-8") as problems,
        open(folder / IMPORTED, "w", encoding="utf-8") as rest,
        EventLog(folder) as log,
    ):
        rest.write(json.dumps({"format": kind}) + "\n")
        writer = Import(kind, problems, rest, left_out)
        log.append(begun)
        log.extend(writer.events(rows))
    return writer


@dataclass
class Import:
    """Writes the problems of rows, yields their turns, and counts both. Lifetime: one import."""

    kind: Kind
    problems: IO[str]
    rest: IO[str]
    left_out: Callable[[str], None]
    rows: int = 0
    turns: int = 0
    known: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    """Digest of each problem, and the number of its rows, by its name."""

    def events(self, rows: Iterable[tuple[str, Row]]) -> Iterator[RequestsIssued | TurnFinished]:
        """Yield the events of rows; rows that are not of the format are left out."""
        for number, (where, row) in enumerate(rows):
            try:
                wanted = name_of(row, self.kind, number)
                problem, texts, more = read_row(row, self.kind, wanted)
                line = json.dumps(more, allow_nan=False)
                digest = bytes.fromhex(digest_text(problem.source.text))[:8]
                name, sample = self._named(wanted, digest)
                turns = turns_from_texts(texts, name, sample)
            except (KeyError, TypeError, ValueError, ProblemError) as error:
                self.left_out(f"{where}: {damage_of(error)}"[:300])
                continue
            self.known[name] = digest, sample + 1
            if sample == 0:
                self.problems.write(problem.model_copy(update={"id": name}).to_json() + "\n")
            head = json.dumps({"problem": name, "sample": sample})
            self.rest.write(f'{head[:-1]}, "row": {line}}}\n')
            self.rows += 1
            self.turns += len(turns)
            for turn in turns:
                yield RequestsIssued(limit=1, asks=(turn.ask,))
                yield TurnFinished(turn=turn)

    def _named(self, name: str, digest: bytes) -> tuple[str, int]:
        """Return a name that no other problem has, and the number of this row of the problem."""
        chosen, attempt = name, 1
        while self.known.get(chosen, (digest, 0))[0] != digest:
            attempt += 1
            chosen = f"{name}-{attempt}"
        return chosen, self.known.get(chosen, (digest, 0))[1]
