"""What a bench run is made of, written into its folder first: a resumed run needs nothing else."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

from tilewright.errors import ConfigError, RecordError
from tilewright.loop.driver import replay
from tilewright.loop.each import Each
from tilewright.records import Problem, SourceFile
from tilewright.records.events import Ask, Begun, Told, Turn
from tilewright.records.log import EventLog, read_events

__all__ = ["CANDIDATES", "PROBLEMS", "Sitting", "begin", "lines_of", "resume"]

PROBLEMS = "problems.jsonl"
CANDIDATES = "candidates.jsonl"
Sources = dict[Ask, tuple[SourceFile, ...]]


@dataclass(frozen=True)
class Sitting:
    """A run, begun or gone on with."""

    folder: Path
    begun: Begun
    problems: list[Problem]
    sources: Sources
    strategy: Each
    told: list[Turn] = field(default_factory=list)
    waiting: list[Ask] = field(default_factory=list)
    """Asked, and never told: the run was killed meanwhile."""


def begin(folder: Path, begun: Begun, problems: list[Problem], sources: Sources) -> Sitting:
    """Write what a run is made of into its folder, and its first event.

    Raises:
        ConfigError: the folder cannot be written.
    """
    try:
        lines = "".join(f"{problem.to_json()}\n" for problem in problems)
        (folder / PROBLEMS).write_text(lines, encoding="utf-8")
        with open(folder / CANDIDATES, "w", encoding="utf-8") as file:
            for ask, files in sources.items():
                row = {"ask": ask.model_dump(), "files": [item.model_dump() for item in files]}
                file.write(json.dumps(row) + "\n")
    except OSError as error:
        raise ConfigError(f"{folder}: cannot be written: {error.strerror}") from error
    with EventLog(folder) as log:
        log.append(begun)
    return Sitting(folder, begun, problems, sources, Each(list(sources)))


def resume(folder: Path) -> Sitting:
    """Go on with a run where its log ends.

    Raises:
        RecordError: it is no run, or its files are damaged; the message names file and line.
    """
    events = list(read_events(folder))
    if not events or not isinstance(events[0], Begun):
        raise RecordError(f"{folder}: its event log has no beginning")
    problems = [Problem.from_json(line) for line in lines_of(folder / PROBLEMS)]
    sources: Sources = {}
    for number, line in enumerate(lines_of(folder / CANDIDATES), start=1):
        try:
            row = json.loads(line)
            files = tuple(SourceFile(**item) for item in row["files"])
            sources[Ask.model_validate(row["ask"])] = files
        except (ValueError, KeyError, TypeError) as error:
            raise RecordError(f"{folder / CANDIDATES}:{number}: damaged: {error}") from error
    strategy = Each(list(sources))
    waiting = replay(strategy, events)
    told = [event.turn for event in events if isinstance(event, Told)]
    return Sitting(folder, events[0], problems, sources, strategy, told, waiting)


def lines_of(path: Path) -> list[str]:
    """Return the lines of a file of a run.

    Raises:
        RecordError: it cannot be read.
    """
    try:
        # Not `splitlines`, which knows ends of lines that JSON does not.
        return [line for line in path.read_text(encoding="utf-8").split("\n") if line]
    except (OSError, UnicodeDecodeError) as error:
        raise RecordError(f"{path}: cannot be read: {error}") from error
