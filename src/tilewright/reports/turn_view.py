"""The turns of a run for the viewer: a short row for each, and one whole turn on demand.

The log may still grow. The memory holds only the place of each turn in the file.
"""

from __future__ import annotations

import itertools
import threading
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tilewright.errors import RecordError
from tilewright.languages.reply_parser import parse_reply
from tilewright.loop.policies.base import digest_of
from tilewright.loop.prompts.conversation import conversation
from tilewright.loop.run_state import PROBLEMS, lines_of
from tilewright.records import Problem
from tilewright.records.event_log import EVENTS, parse_event
from tilewright.records.events import EvalSummary, RunStarted, Turn, TurnFinished
from tilewright.records.run_folder import read_report
from tilewright.reports.html_report import shown_report

MAX_TEXT = 60_000
"""Most characters of a message or a reply that are shown."""


class Turns:
    """The turns in the log of a run folder. Safe to use from several threads."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        self._places: list[tuple[int, int]] = []
        self._numbers: dict[str, int] = {}
        self._read = 0
        self._lines = 0
        self._best: dict[tuple[str, int], float] = {}
        self._right: set[tuple[str, int]] = set()
        self.rows: list[dict[str, Any]] = []
        self.skipped: list[str] = []
        """Lines that are damaged or of a newer schema, each with its file and number."""
        self.begun: RunStarted | None = None
        self.problems: dict[str, Problem] = {}
        self.look()
        if self.begun is None:
            missing = f"{folder}: the first line of its event log is missing"
            raise RecordError(next(iter(self.skipped), missing))
        self.problems = {p.id: p for p in map(Problem.from_json, lines_of(folder / PROBLEMS))}

    def look(self) -> None:
        """Read the lines that are new since the last call."""
        with self._lock:
            path = self.folder / EVENTS
            try:
                with open(path, "rb") as file:
                    file.seek(self._read)
                    for line in itertools.takewhile(lambda line: line.endswith(b"\n"), file):
                        self._lines += 1
                        self._take(line, path)
                        self._read += len(line)
            except OSError as error:
                raise RecordError(f"{path}: no event log can be read: {error.strerror}") from error

    def _take(self, line: bytes, path: Path) -> None:
        try:
            event = parse_event(line)
        except ValidationError as error:
            self.skipped.append(f"{path}:{self._lines}: {error.errors()[0]['msg']}")
            return
        if isinstance(event, RunStarted):
            self.begun = event
        elif isinstance(event, TurnFinished):
            self._numbers[event.turn.ask.id] = len(self.rows)
            self._places.append((self._read, len(line)))
            self.rows.append(self._row(event.turn))

    def _row(self, turn: Turn) -> dict[str, Any]:
        """Return the row of a turn, with its marks in comparison with earlier turns."""
        ask, item = turn.ask, turn.judgements[0] if turn.judgements else None
        parents = [self._numbers[name] for name in ask.parents if name in self._numbers]
        reply = turn.reply
        row: dict[str, Any] = {
            "n": len(self.rows),
            "id": ask.id,
            "problem": ask.problem,
            "sample": ask.sample,
            "turn": ask.turn,
            "parents": parents,
            "verdict": item.verdict if item is not None else ask.role,
            "marks": self._marks((ask.problem, ask.sample), item, parents) if item else [],
        }
        if item is not None and item.speedup is not None:
            row |= {"speedup": item.speedup, "low": item.low, "high": item.high}
        if item is not None and item.verdict != "correct":
            row["reason"] = item.reason[:160]
        if reply is not None:
            row |= {"tokens": reply.prompt_tokens + reply.reply_tokens, "usd": reply.usd}
        return row

    def _marks(self, key: tuple[str, int], item: EvalSummary, parents: list[int]) -> list[str]:
        """Return the marks of a verdict in comparison with earlier ones of its trajectory."""
        marks, right, speed = [], item.verdict == "correct", item.speedup
        if right and key not in self._right:
            marks.append("first correct")
            self._right.add(key)
        if parents and item.verdict != "unjudged":
            before = self.rows[parents[0]]
            worse = (item.high or speed or 0.0) < (before.get("low") or before.get("speedup") or 0)
            if before["verdict"] == "correct" and (not right or worse):
                marks.append("regression")
        if speed is not None and speed > self._best.get(key, 0.0):
            self._best[key] = speed
            marks.append("best so far")
        if item.verdict == "rejected":
            marks.append("hack")
        return marks

    def turn(self, number: int) -> Turn:
        offset, length = self._places[number]
        with open(self.folder / EVENTS, "rb") as file:
            file.seek(offset)
            event = parse_event(file.read(length))
        assert isinstance(event, TurnFinished)
        return event.turn

    def whole(self, number: int) -> dict[str, Any]:
        """Return the whole content of one turn; the first is 0."""
        turn = self.turn(number)
        prompt, same = self._prompt(turn)
        reply, shown, parent = turn.reply, self._shown(turn), None
        if self.rows[number]["parents"]:
            before = self.turn(self.rows[number]["parents"][0])
            report = self._shown(before)
            parent = {
                "n": self.rows[number]["parents"][0],
                "code": self._code(before, report),
                "comparisons": report["comparisons"] if report else [],
            }
        return {
            "n": number,
            "id": turn.ask.id,
            "prompt": prompt,
            "prompt_as_recorded": same,
            "reply": reply.text[:MAX_TEXT] if reply else "",
            "reasoning": reply.reasoning[:MAX_TEXT] if reply else "",
            "model": reply.model if reply else "",
            "code": self._code(turn, shown),
            "parent": parent,
            "feedback": turn.feedback,
            "judgements": [item.model_dump(exclude_none=True) for item in turn.judgements],
            "report": shown,
        }

    def _prompt(self, turn: Turn) -> tuple[list[dict[str, str]], bool]:
        """Return the messages of a turn's prompt, and whether their digest is the recorded one."""
        problem = self.problems.get(turn.ask.problem)
        if problem is None or self.begun is None or turn.reply is None:
            return [], not turn.prompt
        numbers = [self._numbers[name] for name in turn.ask.shown_turns if name in self._numbers]
        shown = [self.turn(number) for number in numbers]
        added = turn.ask.instruction, turn.ask.prompt_override
        messages = conversation(problem, self.begun.language, shown, *added)
        said = [{"role": item.role, "text": item.text[:MAX_TEXT]} for item in messages]
        return said, turn.prompt in ("", digest_of(messages))

    def _shown(self, turn: Turn) -> dict[str, Any] | None:
        """Return the part of a turn's report that a page shows, if the report can be read."""
        names = [item.report for item in turn.judgements if item.report]
        try:
            return shown_report(read_report(self.folder / names[0])) if names else None
        except RecordError:
            return None

    def _code(self, turn: Turn, shown: dict[str, Any] | None) -> str:
        """Return a turn's code, from its report or from its reply."""
        if shown is not None:
            return str(shown["source"])
        problem = self.problems.get(turn.ask.problem)
        if turn.reply is None or problem is None:
            return ""
        return "\n\n".join(file.text for file in parse_reply(turn.reply.text, problem.entry).files)
