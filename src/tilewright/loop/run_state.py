"""The state of a run: how it begins, what its folder holds, and how it is resumed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from tilewright.config import Config, LoopSection
from tilewright.errors import ConfigError, RecordError
from tilewright.loop.budget import Budget
from tilewright.loop.driver import replay
from tilewright.loop.rollout import RecordedHistory
from tilewright.loop.strategies.base import Factory, Plan, Score
from tilewright.loop.strategies.combined import RoundRobin
from tilewright.loop.strategies.fixed_list import FixedList
from tilewright.records import Problem, SourceFile
from tilewright.records.event_log import EventLog, length_of, read_events, turns_of
from tilewright.records.events import Ask, RunStarted, Turn, TurnFinished
from tilewright.records.renamed_fields import current_request
from tilewright.registry import load
from tilewright.scoring.rewards import REWARDS

__all__ = [
    "CANDIDATES",
    "PROBLEMS",
    "BenchRun",
    "SearchRun",
    "begin",
    "begin_session",
    "best_of",
    "budget_of",
    "is_unjudged",
    "lines_of",
    "problems_of",
    "resume",
    "resume_session",
    "score_of",
    "sources_of",
]

PROBLEMS = "problems.jsonl"
CANDIDATES = "candidates.jsonl"
Sources = dict[Ask, tuple[SourceFile, ...]]


@dataclass(frozen=True)
class BenchRun:
    """A run, begun or gone on with."""

    folder: Path
    begun: RunStarted
    problems: list[Problem]
    sources: Sources
    strategy: FixedList
    told: list[Turn] = field(default_factory=list)
    waiting: list[Ask] = field(default_factory=list)
    """Asked, and never told since the run was killed meanwhile, or unjudged by our own failure."""
    log_bytes: int | None = None
    """The length of its log when it was read."""


def begin(folder: Path, begun: RunStarted, problems: list[Problem], sources: Sources) -> BenchRun:
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
    return BenchRun(folder, begun, problems, sources, FixedList(list(sources)))


def resume(folder: Path) -> BenchRun:
    """Go on with a run where its log ends.

    What stayed unjudged without a report, since our own side failed or the problem could not be
    used then, waits to be judged again.

    Raises:
        RecordError: it is no run, or its files are damaged; the message names file and line.
    """
    log_bytes = length_of(folder)
    events = list(read_events(folder))
    if not events or not isinstance(events[0], RunStarted):
        raise RecordError(f"{folder}: its event log has no beginning")
    problems, sources = problems_of(folder), sources_of(folder)
    strategy = FixedList(list(sources))
    waiting = replay(strategy, events)
    turns = turns_of(events)
    told = [turn for turn in turns if not is_unjudged(turn)]
    waiting += [turn.ask for turn in turns if is_unjudged(turn)]
    return BenchRun(folder, events[0], problems, sources, strategy, told, waiting, log_bytes)


def is_unjudged(turn: Turn) -> bool:
    """Tell whether a turn could not be judged, so that to try again may help."""
    return any(item.verdict == "unjudged" and not item.report for item in turn.judgements)


def sources_of(folder: Path) -> Sources:
    """Return the candidates of a run.

    Raises:
        RecordError: a line is damaged; the message names file and line.
    """
    path, found = folder / CANDIDATES, Sources()
    for number, line in enumerate(lines_of(path), start=1):
        try:
            row = json.loads(line)
            files = tuple(SourceFile(**item) for item in row["files"])
            found[Ask.model_validate(current_request(row["ask"]))] = files
        except (ValueError, KeyError, TypeError) as error:
            raise RecordError(f"{path}:{number}: damaged: {error}") from error
    return found


def problems_of(folder: Path) -> list[Problem]:
    """Return the problems of a run.

    Raises:
        RecordError: a line is damaged; the message names file and line.
    """
    path, found = folder / PROBLEMS, []
    for number, line in enumerate(lines_of(path), start=1):
        try:
            found.append(Problem.from_json(line))
        except RecordError as error:
            raise RecordError(f"{path}:{number}: {error}") from error
    return found


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


@dataclass(frozen=True)
class SearchRun:
    """A run, as far as it has come."""

    folder: Path
    begun: RunStarted
    problems: list[Problem]
    history: RecordedHistory
    told: list[Turn] = field(default_factory=list)
    waiting: list[Ask] = field(default_factory=list)
    """Asked, and never told."""
    log_bytes: int | None = None
    """The length of its log when it was read."""


def begin_session(
    folder: Path, begun: RunStarted, problems: Sequence[Problem], settings: Config
) -> SearchRun:
    """Write what a run is made of into its folder, and its first event.

    Raises:
        ConfigError: the folder cannot be written, or an option of the strategy is wrong.
    """
    history = RecordedHistory(_strategy(problems, settings))
    try:
        lines = "".join(f"{problem.to_json()}\n" for problem in problems)
        (folder / PROBLEMS).write_text(lines, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{folder}: cannot be written: {error.strerror}") from error
    with EventLog(folder) as log:
        log.append(begun)
    return SearchRun(folder, begun, list(problems), history)


def resume_session(folder: Path, settings: Config) -> SearchRun:
    """Go on with a run where its log ends, with the settings that it was begun with.

    Raises:
        RecordError: it is no run, it is damaged, or it would ask something else now.
    """
    log_bytes = length_of(folder)
    events = list(read_events(folder))
    if not events or not isinstance(events[0], RunStarted):
        raise RecordError(f"{folder}: its event log has no beginning")
    problems = problems_of(folder)
    history = RecordedHistory(_strategy(problems, settings))
    waiting = replay(history, events)
    told = [event.turn for event in events if isinstance(event, TurnFinished)]
    return SearchRun(folder, events[0], problems, history, told, waiting, log_bytes)


def _strategy(problems: Sequence[Problem], settings: Config) -> RoundRobin:
    section, score = settings.loop, score_of(settings.loop)
    make = cast("Factory", load("strategies", section.strategy, packages=settings.plugins))
    return RoundRobin(
        [
            make(Plan(problem=p.id, sample=s, turns=section.turns, options=section.options), score)
            for p in problems
            for s in range(section.samples)
        ]
    )


def score_of(section: LoopSection) -> Score:
    """Return what a run maximises: the reward of a turn's first judgement."""
    reward = REWARDS[section.reward]

    def score(turn: Turn) -> float | None:
        return reward(turn.judgements[0]) if turn.judgements else None

    return score


def budget_of(section: LoopSection) -> Budget:
    """Return what a run may use."""
    return Budget(
        turns=section.max_turns,
        tokens=section.max_tokens,
        device_s=section.max_device_s,
        usd=section.max_usd,
    )


def best_of(turns: Sequence[Turn], score: Score) -> dict[str, Turn]:
    """Return the best correct turn of each problem, of equal ones the first.

    Of what a capped score cannot tell apart, the one that is surely faster.
    """
    best: dict[str, tuple[tuple[float, float], Turn]] = {}
    for turn in turns:
        mark = score(turn)
        if mark is None or not turn.judgements or turn.judgements[0].verdict != "correct":
            continue
        kept = best.get(turn.ask.problem)
        rank = (mark, turn.judgements[0].low or 0.0)
        if kept is None or rank > kept[0]:
            best[turn.ask.problem] = (rank, turn)
    return {problem: turn for problem, (_, turn) in best.items()}
