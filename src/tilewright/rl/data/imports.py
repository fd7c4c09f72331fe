"""Data of others as a run of ours. Nothing of it is judged; nothing is held in memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from tilewright._version import __version__
from tilewright.errors import ConfigError, ProblemError
from tilewright.loop.run_state import PROBLEMS
from tilewright.records import Problem
from tilewright.records.base import digest_text
from tilewright.records.event_log import EventLog
from tilewright.records.events import RequestsIssued, RunStarted, Turn, TurnFinished
from tilewright.rl.data.drkernel import Kind, beside, name_of, read_coldstart, read_prompt

__all__ = ["Imported", "import_rows"]

Row = dict[str, Any]


@dataclass
class Imported:
    """How much was read."""

    rows: int = 0
    turns: int = 0
    left_out: int = 0


@dataclass
class _Names:
    """Gives each row a problem of its own name, and equal problems one. Lifetime: one import."""

    _known: dict[str, tuple[bytes, int]] = field(default_factory=dict)

    def taken(self, name: str, text: str) -> tuple[str, int, bool]:
        """Return the id for a problem, which trajectory of it this is, and whether it is new."""
        digest = bytes.fromhex(digest_text(text))[:8]
        chosen, again = name, 1
        while True:
            kept, count = self._known.get(chosen, (digest, 0))
            if kept == digest:
                self._known[chosen] = (digest, count + 1)
                return chosen, count, count == 0
            # Another problem has this name already.
            again += 1
            chosen = f"{name}-{again}"


def import_rows(
    rows: Iterable[tuple[str, Row]],
    folder: Path,
    name: str,
    kind: Kind,
    left_out: Callable[[str], None],
) -> Imported:
    """Write rows of a format of drkernel's as a run.

    Rows of `drkernel-coldstart` become turns without a verdict, whose prompts are the imported
    ones; rows of the two others become problems, and the run has no turn.

    Args:
        rows: where each stands, and itself.
        folder: of the run, fresh.
        name: of the source.
        kind: which format.
        left_out: called with each row that is none, by its place.

    Raises:
        ConfigError: the folder cannot be written.
    """
    done, names = Imported(), _Names()
    begun = RunStarted(
        kind="import",
        name=kind,
        problems=name,
        protocols=("strict",),
        evaluator=__version__,
        device="none",
    )
    try:
        with (
            open(folder / PROBLEMS, "w", encoding="utf-8") as problems,
            open(beside(folder), "w", encoding="utf-8") as rest,
            EventLog(folder) as log,
        ):
            rest.write(json.dumps({"format": kind}) + "\n")
            events = _events(rows, kind, names, (problems, rest), done, left_out)
            log.extend(_headed(begun, events))
    except OSError as error:
        raise ConfigError(f"{folder}: cannot be written: {error.strerror}") from error
    return done


def _headed(
    begun: RunStarted, events: Iterator[RequestsIssued | TurnFinished]
) -> Iterator[RunStarted | RequestsIssued | TurnFinished]:
    yield begun
    yield from events


def _events(
    rows: Iterable[tuple[str, Row]],
    kind: Kind,
    names: _Names,
    files: tuple[IO[str], IO[str]],
    done: Imported,
    left_out: Callable[[str], None],
) -> Iterator[RequestsIssued | TurnFinished]:
    problems, rest = files
    for number, (where, row) in enumerate(rows):
        turns: list[Turn] = []
        try:
            wanted = name_of(row, kind, number)
            if kind == "drkernel-coldstart":
                problem, turns, more = read_coldstart(row, wanted)
            else:
                problem, more = read_prompt(row, wanted)
            line = json.dumps({"row": more}, allow_nan=False)
        except (KeyError, TypeError, ValueError, ProblemError) as error:
            done.left_out += 1
            left_out(f"{where}: {type(error).__name__}: {error}"[:300])
            continue
        chosen, sample, fresh = names.taken(wanted, problem.source.text)
        if fresh:
            problems.write(_called(problem, chosen).to_json() + "\n")
        head = json.dumps({"problem": chosen, "sample": sample})
        # One object: what names the row, and the row.
        rest.write(f"{head[:-1]}, {line[1:]}\n")
        done.rows += 1
        done.turns += len(turns)
        for turn in turns:
            placed = _placed(turn, chosen, sample)
            yield RequestsIssued(limit=1, asks=(placed.ask,))
            yield TurnFinished(turn=placed)


def _called(problem: Problem, name: str) -> Problem:
    return problem if problem.id == name else problem.model_copy(update={"id": name})


def _placed(turn: Turn, problem: str, sample: int) -> Turn:
    """Return a turn as one of a trajectory of a problem of this name."""
    ask = turn.ask
    if ask.problem == problem and not sample:
        return turn

    def renamed(name: str) -> str:
        return f"{problem}#{sample}.{name.rpartition('.')[2]}"

    changes = {
        "id": renamed(ask.id),
        "problem": problem,
        "sample": sample,
        "parents": tuple(map(renamed, ask.parents)),
        "shown_turns": tuple(map(renamed, ask.shown_turns)),
    }
    return turn.model_copy(update={"ask": ask.model_copy(update=changes)})
