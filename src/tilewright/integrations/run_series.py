"""The curves of a run: a pure function of its event log, the same for a live run and an old one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from pydantic import ValidationError

from tilewright.errors import RecordError
from tilewright.loop.budget import UsageMeter
from tilewright.loop.candidate_text import code_of
from tilewright.loop.leaders import Leaders
from tilewright.loop.strategies.base import Score
from tilewright.records import SourceFile
from tilewright.records.event_log import EVENTS, line_fault, parse_event, unreadable_log
from tilewright.records.events import (
    TRAININGS,
    Event,
    RequestsIssued,
    RunStarted,
    Stepped,
    Turn,
    TurnFinished,
)
from tilewright.records.run_folder import read_report
from tilewright.scoring.rewards import REWARDS

HELD_OUT = "score"
"""Beginning of the names of batches of held-out problems."""


@dataclass(frozen=True)
class Point:
    """Values of several curves at one place of the horizontal axis.

    `step` is the number of finished turns, or of optimizer steps in a training.
    """

    step: int
    values: dict[str, float]


@dataclass(frozen=True)
class BestCandidate:
    """The best candidate of one problem, with its files and its verdict as JSON."""

    problem: str
    files: tuple[SourceFile, ...]
    verdict: str


@dataclass
class RunSeries:
    """The curves of a run up to some line of its log. Lifetime: one reader of the log.

    Args:
        score: what the run's best candidates have most of.
    """

    score: Score
    begun: RunStarted | None = None
    _leaders: Leaders = field(init=False)
    _spent: UsageMeter = field(default_factory=UsageMeter)
    _verdicts: Counter[str] = field(default_factory=Counter)
    _findings: Counter[str] = field(default_factory=Counter)
    _last: dict[str, Turn] = field(default_factory=dict)
    _changed: set[str] = field(default_factory=set)
    _turns: int = 0

    def __post_init__(self) -> None:
        """Begin without a leader."""
        self._leaders = Leaders(self.score)

    def add(self, event: Event) -> Point | None:
        """Take in an event; return the point that it adds, if any."""
        match event:
            case RunStarted():
                self.begun = event
            case TurnFinished(turn=turn):
                self._finished(turn)
                if self.begun is not None and self.begun.kind not in TRAININGS:
                    return Point(self._turns, self._values())
            case Stepped():
                return Point(event.step, {**self._values(), **_figures(event)})
            case _:
                pass
        return None

    def best(self) -> dict[str, Turn]:
        """Return the best turn of each problem, with the pooled interval of its trials."""
        return self._leaders.pooled()

    def _finished(self, turn: Turn) -> None:
        self._turns += 1
        self._spent.add(turn)
        self._leaders.add(turn)
        self._changed.add(turn.ask.problem)
        before = self._last.get(turn.ask.id)
        if before is not None:
            # A resumed run judged it again: the last verdict counts.
            self._count(before, -1)
        self._count(turn, 1)
        self._last[turn.ask.id] = turn

    def _count(self, turn: Turn, by: int) -> None:
        several = self.begun is not None and len(self.begun.protocols) > 1
        for item in turn.judgements:
            self._verdicts[f"{item.protocol}/{item.verdict}" if several else item.verdict] += by
            for code in set(item.findings):
                self._findings[code] += by

    def _values(self) -> dict[str, float]:
        """Return the values after the last turn; the best of each problem that had a turn."""
        found = {"turns": float(self._turns)}
        for problem in sorted(self._changed):
            turn = self._leaders.pooled_of(problem)
            if turn is None:
                continue
            shown = turn.judgements[0]
            for name in ("speedup", "low", "high"):
                value = getattr(shown, name)
                if value is not None:
                    found[f"best/{problem}/{name}"] = value
        self._changed.clear()
        found |= {f"verdicts/{name}": float(count) for name, count in self._verdicts.items()}
        found |= {f"findings/{code}": float(count) for code, count in self._findings.items()}
        spent = self._spent.spent
        found |= {"spent/tokens": float(spent.tokens), "spent/device_s": spent.device_s}
        if spent.usd:
            found["spent/usd"] = spent.usd
        return found


def _figures(event: Stepped) -> dict[str, float]:
    kind = "held_out" if event.batch.startswith(HELD_OUT) else "train"
    return {f"{kind}/{n}": v for n, v in event.figures.items() if v is not None}


class LogFollower:
    """Reads whole lines of an event log, and later those that were appended since."""

    def __init__(self, folder: Path) -> None:
        self._path, self._read, self._line = folder / EVENTS, 0, 0

    def has_begun(self) -> bool:
        """Tell whether there is a log: a run makes it some time after its folder."""
        return self._path.exists()

    def fresh(self) -> Iterator[Event]:
        """Yield the events that were not yielded before.

        Raises:
            RecordError: there is no log, or a line cannot be read.
        """
        try:
            file = open(self._path, "rb")  # noqa: SIM115 - closed below
        except OSError as error:
            raise unreadable_log(self._path.parent, error) from error
        with file:
            file.seek(self._read)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                self._read, self._line = self._read + len(line), self._line + 1
                try:
                    event = parse_event(line)
                except ValidationError as error:
                    message = f"{self._path}:{self._line}: {line_fault(error)}"
                    raise RecordError(message) from error
                if not isinstance(event, RequestsIssued):
                    yield event


def series_of(folder: Path) -> RunSeries:
    """Return the curves of a run before its first event, ranked by the reward of its settings."""
    name = "speed"
    with suppress(OSError, ValueError, yaml.YAMLError):
        tree = yaml.safe_load((folder / "run.yaml").read_text(encoding="utf-8"))
        if isinstance(tree, dict) and isinstance(loop := tree.get("loop"), dict):
            name = loop.get("reward", name)
    reward = REWARDS[name if name in REWARDS else "speed"]
    return RunSeries(lambda turn: reward(turn.judgements[0]) if turn.judgements else None)


def best_candidates(folder: Path, series: RunSeries) -> Iterator[BestCandidate]:
    """Yield the best candidate of each problem, with its files from the report of the run."""
    for problem, turn in series.best().items():
        shown = turn.judgements[0]
        files: tuple[SourceFile, ...] = ()
        if shown.report:
            with suppress(RecordError):
                files = read_report(folder / shown.report).request.candidate.files
        if not files and (text := code_of(turn)):
            files = (SourceFile(path="candidate.txt", text=text),)
        yield BestCandidate(problem, files, shown.to_json(indent=1))
