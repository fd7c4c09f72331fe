"""The turns of a run for the viewer: a short row for each, and one whole turn on demand.

The log may still grow. The memory holds the place of each turn in the file, and what is known of
each candidate.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tilewright.errors import RecordError
from tilewright.languages.reply_parser import parse_reply
from tilewright.loop.candidate_text import text_of
from tilewright.loop.choices import Normalisation, sentence_scores, softmax
from tilewright.loop.policies.base import digest_of
from tilewright.loop.prompts import messages_of
from tilewright.loop.prompts.material import Document
from tilewright.loop.replayed_prompts import documents_of, material_of
from tilewright.loop.run_state import lines_of
from tilewright.records import Problem
from tilewright.records.base import digest_text
from tilewright.records.event_log import EVENTS, line_fault, parse_event, unreadable_log
from tilewright.records.events import (
    Ask,
    Choice,
    EvalSummary,
    RequestsIssued,
    RunStarted,
    Stepped,
    Turn,
    TurnFinished,
)
from tilewright.records.run_folder import PROBLEMS, read_report
from tilewright.reports.html_report import shown_report
from tilewright.reports.search_progress import LeaderChange, SearchProgress
from tilewright.reports.training_steps import TrainingSteps
from tilewright.scoring.strategy_table import FINAL_RACE, REMEASURE

MAX_TEXT = 60_000
"""Most characters of a message or a reply that are shown."""
MAX_REASON = 160
"""Most characters of the reason in a row."""
RULES: tuple[Normalisation, ...] = ("sum", "token", "word")


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
        self._progress = SearchProgress()
        self.rows: list[dict[str, Any]] = []
        self.cells: list[dict[str, Any]] = []
        """Cells of the archives of a search: trajectory, place, and the writer's request."""
        self._steps = TrainingSteps()
        self.step_version = 0
        """Changes whenever a step of a training has ended."""
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
                raise unreadable_log(self.folder, error) from error

    def _take(self, line: bytes, path: Path) -> None:
        try:
            event = parse_event(line)
        except ValidationError as error:
            self.skipped.append(f"{path}:{self._lines}: {line_fault(error)}")
            return
        if isinstance(event, RunStarted):
            self.begun = event
        elif isinstance(event, RequestsIssued):
            self._progress.issued(event.asks)
        elif isinstance(event, Stepped):
            self._steps.add(event)
            self.step_version += 1
        elif isinstance(event, TurnFinished):
            self._numbers[event.turn.ask.id] = len(self.rows)
            self._places.append((self._read, len(line)))
            self.rows.append(self._row(event.turn))

    def steps(self) -> list[dict[str, Any]]:
        """Return the steps of a training in order, with their kinds and figures."""
        with self._lock:
            return self._steps.rows()

    def _row(self, turn: Turn) -> dict[str, Any]:
        """Return the row of a turn, with its marks in comparison with earlier turns.

        A key is missing where it would hold the usual value: a run has tens of thousands of rows.
        """
        ask, item = turn.ask, turn.judgements[0] if turn.judgements else None
        change = self._progress.finished(turn)
        row: dict[str, Any] = {
            "n": len(self.rows),
            "id": ask.id,
            "problem": ask.problem,
            "sample": ask.sample,
            "turn": ask.turn,
            "parents": self._known(ask.parents),
            "verdict": item.verdict if item is not None else ask.role,
            "marks": self._marks(turn, item, change),
        }
        if change is not None and change.after in self._numbers:
            row["leader"] = self._numbers[change.after]
        if ask.role != "propose":
            row["role"] = ask.role
        if ask.operator:
            row["operator"] = ask.operator
        if item is not None and item.speedup is not None:
            row |= {"speedup": item.speedup, "low": item.low, "high": item.high}
        if seconds := sum(judged.seconds for judged in turn.judgements):
            row["seconds"] = round(seconds, 3)
        if reason := _reason(turn, item):
            row["reason"] = reason[:MAX_REASON]
        if turn.reply is not None:
            tokens = turn.reply.prompt_tokens + turn.reply.reply_tokens
            row |= {"tokens": tokens, "usd": turn.reply.usd}
        return row

    def _known(self, names: Iterable[str]) -> list[int]:
        """Return the numbers of the turns of some requests, as far as they have one."""
        return [self._numbers[name] for name in names if name in self._numbers]

    def _marks(
        self, turn: Turn, item: EvalSummary | None, change: LeaderChange | None
    ) -> list[str]:
        """Return the marks of a turn in comparison with earlier ones of its trajectory."""
        marks = ["refused"] if turn.refused else []
        if turn.repeats:
            return [*marks, "repeat"]
        if turn.ask.operator == REMEASURE:
            return [*marks, "final trial"]
        if item is None:
            return marks
        if turn.ask.operator == FINAL_RACE:
            marks.append("race")
        marks += self._of_verdict(turn.ask, item)
        if change is not None:
            marks.append("new leader" if change.after else "leader lost")
        return marks

    def _of_verdict(self, ask: Ask, item: EvalSummary) -> Iterator[str]:
        """Yield the marks of a verdict."""
        key, right, speed = (ask.problem, ask.sample), item.verdict == "correct", item.speedup
        if right and key not in self._right:
            self._right.add(key)
            yield "first correct"
        parents = self._known(ask.parents)
        # A further trial of the same code is no step from its parent.
        if parents and item.verdict != "unjudged" and ask.role != "measure":
            before = self.rows[parents[0]]
            worse = (item.high or speed or 0.0) < (before.get("low") or before.get("speedup") or 0)
            if before["verdict"] == "correct" and (not right or worse):
                yield "regression"
        if speed is not None and speed > self._best.get(key, 0.0):
            self._best[key] = speed
            yield "best so far"
        if item.verdict == "rejected":
            yield "hack"

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
        ask, reply, shown = turn.ask, turn.reply, self._shown(turn)
        earlier = {name: self.turn(n) for name, n in self._earlier(ask).items()}
        documents = list(documents_of(self.folder, ask.documents))
        prompt, same = self._prompt(turn, earlier, documents)
        return {
            "n": number,
            "id": ask.id,
            "prompt": prompt,
            "prompt_as_recorded": same,
            "reply": reply.text[:MAX_TEXT] if reply else "",
            "reasoning": reply.reasoning[:MAX_TEXT] if reply else "",
            "model": reply.model if reply else "",
            "code": self._code(turn, shown),
            "parent": self._parent(ask, earlier),
            "feedback": turn.feedback,
            "judgements": [item.model_dump(exclude_none=True) for item in turn.judgements],
            "report": shown,
            **self._request(turn, documents),
        }

    def _request(self, turn: Turn, documents: Sequence[Document]) -> dict[str, Any]:
        """Return what a turn's request asked for, and what became of it in the search."""
        ask, known = turn.ask, self._progress.estimates.of(turn.ask.id)
        estimate: dict[str, Any] | None = None
        if known.trials:
            ends = known.interval or (None, None)
            estimate = {"verdict": known.verdict, "trials": len(known.trials)}
            estimate |= {"speedup": known.speedup, "low": ends[0], "high": ends[1]}
        return {
            "role": ask.role,
            "form": ask.form,
            "policy": ask.policy,
            "operator": ask.operator,
            "instruction": ask.instruction[:MAX_TEXT],
            "parents": self._named(ask.parents),
            "shown": self._named(ask.shown_turns),
            "repeats": self._named((turn.repeats,) if turn.repeats else ()),
            "refused": turn.refused,
            "estimate": estimate,
            "unjudged_trials": known.unjudged,
            "documents": [{"title": item.title, "text": item.text} for item in documents],
            "choice": None if turn.choice is None else choice_shown(ask.choices, turn.choice),
        }

    def _named(self, names: Iterable[str]) -> list[dict[str, Any]]:
        """Return requests by id, each with the number of its turn if the log has it."""
        return [{"id": name, "n": self._numbers.get(name)} for name in names]

    def _earlier(self, ask: Ask) -> dict[str, int]:
        """Return the numbers of the turns that a request shows or builds on."""
        names = dict.fromkeys((*ask.shown_turns, *ask.parents))
        return {name: self._numbers[name] for name in names if name in self._numbers}

    def _parent(self, ask: Ask, earlier: Mapping[str, Turn]) -> dict[str, Any] | None:
        """Return the code and the times of the first parent, to which a turn is compared."""
        if ask.role == "measure" or not ask.parents or ask.parents[0] not in earlier:
            return None
        before = earlier[ask.parents[0]]
        report = self._shown(before)
        return {
            "n": self._numbers[before.ask.id],
            "code": self._code(before, report),
            "comparisons": report["comparisons"] if report else [],
        }

    def _prompt(
        self, turn: Turn, earlier: dict[str, Turn], documents: Sequence[Document]
    ) -> tuple[list[dict[str, str]], bool]:
        """Return the messages of a turn's prompt, and whether their digest is the recorded one."""
        ask, problem = turn.ask, self.problems.get(turn.ask.problem)
        if ask.role == "measure" or (turn.reply is None and not turn.prompt):
            # Nobody was asked.
            return [], True
        if problem is None or self.begun is None:
            return [], not turn.prompt
        then, language = self._progress.at(ask), self.begun.language
        material = material_of(ask, problem, language, earlier, then, documents)
        messages = messages_of(material)
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
        """Return a turn's code, from its report, its record or its reply; empty without any."""
        if shown is not None:
            return str(shown["source"])
        problem, wordy = self.problems.get(turn.ask.problem), turn.ask.role in ("say", "choose")
        if turn.code or turn.reply is None or problem is None or turn.refused or wordy:
            return turn.code
        files = parse_reply(turn.reply.text, problem.entry).files
        whole = text_of(turn.reply.text)
        if not files and digest_text(whole) == turn.source:
            return whole
        return "\n\n".join(file.text for file in files)


def _reason(turn: Turn, item: EvalSummary | None) -> str:
    """Return why a turn is no correct candidate, or what came of its request, in words."""
    if turn.refused:
        return turn.refused
    if item is not None:
        return "" if item.verdict == "correct" else item.reason
    if turn.choice is not None and turn.choice.taken < len(turn.ask.choices):
        return f"chose {turn.ask.choices[turn.choice.taken]}"
    return ""


def choice_shown(choices: Sequence[str], choice: Choice) -> dict[str, Any]:
    """Return a choice with the probabilities of all its answers, if the model gave any.

    There are three of each, since strategies weigh long answers differently. They come from the sum
    of the log-probabilities of the tokens, and from their means per token and per word.
    """
    probabilities = {}
    if len(choice.logprobs) == len(choices):
        for rule in RULES:
            probabilities[rule] = softmax(sentence_scores(choice.logprobs, choices, rule))
    return {
        "choices": list(choices),
        "taken": choice.taken,
        "unclear": choice.unclear,
        "probabilities": probabilities,
    }
