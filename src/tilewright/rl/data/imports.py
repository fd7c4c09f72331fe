"""Foreign data as a run of ours. Nothing is judged, and memory holds one row at a time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from tilewright._version import __version__
from tilewright.errors import ConfigError, ProblemError
from tilewright.loop.run_state import PROBLEMS
from tilewright.records.base import digest_text
from tilewright.records.event_log import EventLog
from tilewright.records.events import RequestsIssued, RunStarted, Turn, TurnFinished
from tilewright.rl.data.drkernel_rows import Kind, imported_path, name_of, read_row

__all__ = ["Imported", "import_rows"]

Row = dict[str, Any]


@dataclass
class Imported:
    """The numbers of an import."""

    rows: int = 0
    turns: int = 0
    left_out: int = 0


def import_rows(
    rows: Iterable[tuple[str, Row]],
    folder: Path,
    name: str,
    kind: Kind,
    left_out: Callable[[str], None],
) -> Imported:
    """Write rows of a format of Dr. Kernel as a run.

    Rows of `drkernel-coldstart` become turns without a verdict, with their imported prompts. Rows
    of the two other formats become problems, and the run has no turn.

    Args:
        rows: position and content of each row.
        folder: of the run, empty.
        name: of the source.
        kind: the format.
        left_out: receives a line for each row that is not of the format.

    Raises:
        ConfigError: the folder cannot be written.
    """
    try:
        with (
            open(folder / PROBLEMS, "w", encoding="utf-8") as problems,
            open(imported_path(folder), "w", encoding="utf-8") as rest,
            EventLog(folder) as log,
        ):
            rest.write(json.dumps({"format": kind}) + "\n")
            writer = _Import(kind, problems, rest, left_out)
            log.append(
                RunStarted(
                    kind="import",
                    name=kind,
                    problems=name,
                    protocols=("strict",),
                    evaluator=__version__,
                    device="none",
                )
            )
            log.extend(writer.events(rows))
    except OSError as error:
        raise ConfigError(f"{folder}: cannot be written: {error.strerror}") from error
    return writer.done


class _Import:
    """Writes the problems of rows, and yields their turns. Lifetime: one import."""

    def __init__(
        self, kind: Kind, problems: IO[str], rest: IO[str], left_out: Callable[[str], None]
    ) -> None:
        self.done = Imported()
        self._kind, self._left_out = kind, left_out
        self._problems, self._rest = problems, rest
        self._known: dict[str, tuple[bytes, int]] = {}
        """Digest of each problem, and the number of its rows, by its name."""

    def events(self, rows: Iterable[tuple[str, Row]]) -> Iterator[RequestsIssued | TurnFinished]:
        """Yield the events of rows; rows that are not of the format are left out."""
        for number, (where, row) in enumerate(rows):
            try:
                wanted = name_of(row, self._kind, number)
                problem, turns, more = read_row(row, self._kind, wanted)
                line = json.dumps(more, allow_nan=False)
            except (KeyError, TypeError, ValueError, ProblemError) as error:
                self.done.left_out += 1
                self._left_out(f"{where}: {type(error).__name__}: {error}"[:300])
                continue
            name, sample = self._named(wanted, problem.source.text)
            if sample == 0:
                self._problems.write(problem.model_copy(update={"id": name}).to_json() + "\n")
            head = json.dumps({"problem": name, "sample": sample})
            self._rest.write(f'{head[:-1]}, "row": {line}}}\n')
            self.done.rows += 1
            self.done.turns += len(turns)
            for turn in turns:
                placed = _placed(turn, name, sample)
                yield RequestsIssued(limit=1, asks=(placed.ask,))
                yield TurnFinished(turn=placed)

    def _named(self, name: str, text: str) -> tuple[str, int]:
        """Return a name that no other problem has, and the number of this row of the problem."""
        digest = bytes.fromhex(digest_text(text))[:8]
        chosen, attempt = name, 1
        while self._known.get(chosen, (digest, 0))[0] != digest:
            attempt += 1
            chosen = f"{name}-{attempt}"
        sample = self._known.get(chosen, (digest, 0))[1]
        self._known[chosen] = digest, sample + 1
        return chosen, sample


def _placed(turn: Turn, problem: str, sample: int) -> Turn:
    """Return a turn with the ids of a trajectory of a problem."""

    def renamed(name: str) -> str:
        return f"{problem}#{sample}.{name.rpartition('.')[2]}"

    changes = {
        "id": renamed(turn.ask.id),
        "problem": problem,
        "sample": sample,
        "parents": tuple(map(renamed, turn.ask.parents)),
        "shown_turns": tuple(map(renamed, turn.ask.shown_turns)),
    }
    return turn.model_copy(update={"ask": turn.ask.model_copy(update=changes)})
