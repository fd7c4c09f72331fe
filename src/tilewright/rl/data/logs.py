"""The event log of a run as it lies on the disk: places are held in memory, turns are not."""

from __future__ import annotations

import json
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import IO

from pydantic import ValidationError

from tilewright.errors import RecordError
from tilewright.loop.run_state import PROBLEMS
from tilewright.records import Problem
from tilewright.records.event_log import EVENTS, parse_event
from tilewright.records.events import EVENT, RunStarted, Turn, TurnFinished
from tilewright.records.renamed_fields import current_line

__all__ = ["RunLog"]

LeftOut = Callable[[str], None]
RECENT = 512
"""Turns and problems that are kept parsed: those of a trajectory are asked for again and again."""


class _Places:
    """Where the line of a key begins, 16 bytes each."""

    def __init__(self) -> None:
        self._keys, self._offsets = array("Q"), array("Q")

    def add(self, key: str, offset: int) -> None:
        self._keys.append(_short(key))
        self._offsets.append(offset)

    def close(self) -> None:
        order = sorted(range(len(self._keys)), key=self._keys.__getitem__)
        self._keys = array("Q", (self._keys[place] for place in order))
        self._offsets = array("Q", (self._offsets[place] for place in order))

    def find(self, key: str) -> int | None:
        wanted = _short(key)
        place = bisect_left(self._keys, wanted)
        if place == len(self._keys) or self._keys[place] != wanted:
            return None
        return self._offsets[place]


def _short(key: str) -> int:
    return int.from_bytes(blake2b(key.encode("utf-8", "replace"), digest_size=8).digest())


class RunLog:
    """A run folder, opened for reading. Lifetime: until `close`.

    Damaged lines are named to `left_out`, and the rest is read; a last line without an end is of
    a run that was killed and is left out silently.

    Raises:
        RecordError: it is no run.
    """

    def __init__(self, folder: Path, left_out: LeftOut) -> None:
        self.folder = folder
        self._left_out = left_out
        self._events = _opened(folder / EVENTS)
        self._problems = _opened(folder / PROBLEMS)
        self._turns, self._texts = _Places(), _Places()
        self._told = array("Q")
        self._group, self._number = array("L"), array("L")
        self.begun = self._index()
        self._index_problems()
        self.turn = lru_cache(RECENT)(self._turn)
        self.problem = lru_cache(RECENT)(self._problem)

    def close(self) -> None:
        """Close the files."""
        self._events.close()
        self._problems.close()

    def _index(self) -> RunStarted:
        begun: RunStarted | None = None
        groups: dict[int, int] = {}
        offset, path = 0, self.folder / EVENTS
        for number, line in enumerate(self._events, start=1):
            if not line.endswith(b"\n"):
                break
            try:
                event = json.loads(current_line(line))
                if event["event"] == "turn_finished":
                    ask = event["turn"]["ask"]
                    key = _short(f"{ask['problem']}\n{ask.get('sample', 0)}")
                    self._group.append(groups.setdefault(key, len(groups)))
                    self._number.append(ask.get("turn", 0))
                    self._told.append(offset)
                    self._turns.add(ask["id"], offset)
                elif event["event"] == "run_started":
                    found = EVENT.validate_python(event)
                    begun = found if isinstance(found, RunStarted) else None
            except (ValueError, KeyError, TypeError) as error:
                self._left_out(f"{path}:{number}: damaged: {error}"[:300])
            offset += len(line)
        self._turns.close()
        if begun is None:
            raise RecordError(f"{self.folder}: its event log has no beginning")
        return begun

    def _index_problems(self) -> None:
        offset = 0
        for number, line in enumerate(self._problems, start=1):
            try:
                self._texts.add(json.loads(line)["id"], offset)
            except (ValueError, KeyError, TypeError) as error:
                self._left_out(f"{self.folder / PROBLEMS}:{number}: damaged: {error}"[:300])
            offset += len(line)
        self._texts.close()

    def turns(self) -> Iterator[Turn]:
        """Yield the turns that have a reply, in the order of the log."""
        for place in range(len(self._told)):
            turn = self._at(self._told[place])
            if turn is not None:
                yield turn

    def trajectories(self) -> Iterator[list[Turn]]:
        """Yield each trajectory, its turns in order; trajectories in the order of their begin."""
        order = sorted(
            range(len(self._told)), key=lambda place: (self._group[place], self._number[place])
        )
        own: list[Turn] = []
        last = -1
        for place in order:
            if self._group[place] != last and own:
                yield own
                own = []
            last = self._group[place]
            turn = self._at(self._told[place])
            if turn is not None:
                own.append(turn)
        if own:
            yield own

    def problems(self) -> Iterator[Problem]:
        """Yield the problems of the run."""
        self._problems.seek(0)
        offset = 0
        while True:
            self._problems.seek(offset)
            line = self._problems.readline()
            if not line:
                return
            offset += len(line)
            try:
                yield Problem.from_json(line)
            except RecordError as error:
                self._left_out(f"{self.folder / PROBLEMS}: {error}"[:300])

    def _at(self, offset: int) -> Turn | None:
        self._events.seek(offset)
        try:
            event = parse_event(self._events.readline())
        except ValidationError as error:
            self._left_out(f"{self.folder / EVENTS}: byte {offset}: {error.errors()[0]['msg']}")
            return None
        assert isinstance(event, TurnFinished)
        return event.turn if event.turn.reply is not None else None

    def _turn(self, name: str) -> Turn | None:
        """Return the turn of an ask, or `None` where it has no reply or is not there."""
        offset = self._turns.find(name)
        return None if offset is None else self._at(offset)

    def _problem(self, name: str) -> Problem | None:
        """Return a problem, or `None` where it is not there or damaged."""
        offset = self._texts.find(name)
        if offset is None:
            return None
        self._problems.seek(offset)
        try:
            return Problem.from_json(self._problems.readline())
        except RecordError:
            return None

    def shown(self, turn: Turn) -> list[Turn]:
        """Return the turns that a turn's prompt shows, oldest first."""
        return [item for name in turn.ask.shown_turns if (item := self.turn(name)) is not None]


def _opened(path: Path) -> IO[bytes]:
    try:
        return open(path, "rb")
    except OSError as error:
        raise RecordError(f"{path}: cannot be read: {error.strerror}") from error
