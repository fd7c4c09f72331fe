"""The event log of a run, read from the disk: memory holds offsets of turns, and not the turns."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import IO

from pydantic import ValidationError

from tilewright.errors import RecordError, reason_of
from tilewright.records import Problem
from tilewright.records.event_log import (
    EVENTS,
    current_line,
    line_fault,
    parse_event,
    unreadable_log,
)
from tilewright.records.events import EVENT, Event, RunStarted, Turn, TurnFinished
from tilewright.records.field_faults import damage_of
from tilewright.records.run_folder import PROBLEMS
from tilewright.rl.prompt_contexts import contexts_of_run

MAX_CACHED = 512
"""Turns and problems that stay parsed, since those of a trajectory are read repeatedly."""


class RunLog:
    """A run folder, opened for reading. Lifetime: until `close`.

    It names damaged lines to `left_out` and reads the rest. A last line without an end comes from
    a killed run and is skipped silently. Of several turns of one request only the last one counts,
    as in `turns_of`.
    """

    def __init__(self, folder: Path, left_out: Callable[[str], None]) -> None:
        self.folder, self._left_out = folder, left_out
        self._events = _opened(folder / EVENTS)
        self._problems = _opened(folder / PROBLEMS)
        # Offsets of turns by the id of the request, in the order of the first turn of each; the
        # number of each request in its trajectory; offsets of problems by id.
        self._turns: dict[str, int] = {}
        self._trajectories: dict[tuple[str, int], dict[str, int]] = {}
        self._texts: dict[str, int] = {}
        self.begun = self._index()
        self._index_problems()
        self._stored = contexts_of_run(folder).turns()
        self.turn = lru_cache(MAX_CACHED)(self._turn)
        self.problem = lru_cache(MAX_CACHED)(self._problem)

    def close(self) -> None:
        """Close the files."""
        self._events.close()
        self._problems.close()

    def _index(self) -> RunStarted:
        begun: RunStarted | None = None
        offset, path = 0, self.folder / EVENTS
        for number, line in enumerate(self._events, start=1):
            if not line.endswith(b"\n"):
                break
            try:
                event = json.loads(current_line(line))
                if event["event"] == "turn_finished":
                    ask = event["turn"]["ask"]
                    trajectory = (str(ask["problem"]), ask.get("sample", 0))
                    requests = self._trajectories.setdefault(trajectory, {})
                    requests[ask["id"]] = ask.get("turn", 0)
                    self._turns[ask["id"]] = offset
                elif event["event"] == "run_started":
                    found = EVENT.validate_python(event)
                    begun = found if isinstance(found, RunStarted) else None
            except (ValueError, KeyError, TypeError) as error:
                self._left_out(f"{path}:{number}: damaged: {damage_of(error)}"[:300])
            offset += len(line)
        if begun is None:
            raise RecordError(f"{self.folder}: its event log has no beginning")
        return begun

    def _index_problems(self) -> None:
        offset = 0
        for number, line in enumerate(self._problems, start=1):
            try:
                self._texts.setdefault(json.loads(line)["id"], offset)
            except (ValueError, KeyError, TypeError) as error:
                self._left_out(
                    f"{self.folder / PROBLEMS}:{number}: damaged: {damage_of(error)}"[:300]
                )
            offset += len(line)

    def events(self, *, named: bool = False) -> Iterator[Event]:
        """Yield the events that can be read, in the order of the log; `named`: name the others."""
        self._events.seek(0)
        # Others read turns by their offsets meanwhile, so the place is kept here.
        offset = 0
        while (line := self._events.readline()).endswith(b"\n"):
            place, offset = offset, offset + len(line)
            try:
                event = parse_event(line)
                turn = event.turn if isinstance(event, TurnFinished) else None
                if turn is None or place == self._turns.get(turn.ask.id):
                    yield event
            except ValidationError as error:
                # A line that is no JSON was named before.
                if named and error.errors()[0]["type"] != "json_invalid":
                    self._left_out(f"{self.folder / EVENTS}: byte {place}: {line_fault(error)}")
            self._events.seek(offset)

    def turns(self) -> Iterator[Turn]:
        """Return the turns that have a reply, in the order of the first answers."""
        return filter(None, map(self._at, self._turns.values()))

    def trajectories(self) -> Iterator[list[Turn]]:
        """Yield the turns of each trajectory, in order; the first begun trajectory comes first."""
        for requests in self._trajectories.values():
            places = sorted((number, self._turns[name]) for name, number in requests.items())
            if turns := [*filter(None, (self._at(offset) for _, offset in places))]:
                yield turns

    def problems(self) -> Iterator[Problem]:
        """Yield the problems of the run."""
        for name in self._texts:
            if problem := self.problem(name):
                yield problem
            else:
                self._left_out(f"{self.folder / PROBLEMS}: {name} is damaged")

    def shown(self, turn: Turn) -> list[Turn]:
        """Return the turns that a turn's prompt shows, oldest first."""
        return [item for name in turn.ask.shown_turns if (item := self.turn(name)) is not None]

    def _at(self, offset: int) -> Turn | None:
        self._events.seek(offset)
        try:
            event = parse_event(self._events.readline())
        except ValidationError as error:
            self._left_out(f"{self.folder / EVENTS}: byte {offset}: {line_fault(error)}")
            return None
        assert isinstance(event, TurnFinished)
        return event.turn if event.turn.reply is not None else None

    def _turn(self, name: str) -> Turn | None:
        """Return the turn of a request; `None` if it has no reply or is not there.

        A training may show turns of stored contexts, which are not in its log.
        """
        if name in self._turns:
            return self._at(self._turns[name])
        return self._stored.get(name)

    def _problem(self, name: str) -> Problem | None:
        """Return a problem; `None` if it is not there or damaged."""
        if name in self._texts:
            self._problems.seek(self._texts[name])
            with suppress(RecordError):
                return Problem.from_json(self._problems.readline())
        return None


def _opened(path: Path) -> IO[bytes]:
    try:
        return open(path, "rb")
    except OSError as error:
        if path.name == EVENTS:
            raise unreadable_log(path.parent, error) from error
        raise RecordError(f"{path}: cannot be read: {reason_of(error)}") from error
