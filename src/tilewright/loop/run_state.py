"""The state of a run: how it begins, what its folder holds, and how it is resumed.

A folder that cannot be written raises `ConfigError`. Files that are missing or damaged raise
`RecordError`, whose message names file and line.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

from tilewright.config import Config, LoopSection
from tilewright.errors import ConfigError, RecordError, reason_of, writing
from tilewright.loop.budget import Budget
from tilewright.loop.driver import Strategy, replay
from tilewright.loop.history import RecordedHistory
from tilewright.loop.racing import RaceRules
from tilewright.loop.shown_documents import check_unchanged, open_library
from tilewright.loop.strategies.base import Factory, FixedList, Plan, RoundRobin, Score
from tilewright.loop.strategies.raced_admissions import RACED, RacedAdmissions
from tilewright.loop.strategies.trajectory import LimitedTrajectory, TrajectoryLimits
from tilewright.records import Problem, SourceFile
from tilewright.records.event_log import EventLog, length_of, read_events, turns_of
from tilewright.records.events import Ask, Event, RunStarted, Turn, TurnFinished
from tilewright.records.field_faults import damage_of
from tilewright.records.run_folder import PROBLEMS
from tilewright.records.version1 import upgrade
from tilewright.registry import load
from tilewright.scoring.rewards import REWARDS

CANDIDATES = "candidates.jsonl"
Sources = dict[Ask, tuple[SourceFile, ...]]
AnyStrategy = TypeVar("AnyStrategy", bound=Strategy)
Parsed = TypeVar("Parsed")


@dataclass(frozen=True)
class RunState(Generic[AnyStrategy]):
    """A run that was begun or resumed."""

    folder: Path
    begun: RunStarted
    problems: list[Problem]
    strategy: AnyStrategy
    sources: Sources = field(default_factory=dict)
    """The candidates, if they come from files."""
    finished: list[Turn] = field(default_factory=list)
    """Turns in the log, without those that will be judged again."""
    waiting: list[Ask] = field(default_factory=list)
    """Requests without a finished turn: the run was stopped before, or the turn was unjudged."""
    log_bytes: int | None = None
    """The length of the event log when it was read."""


BenchRun = RunState[FixedList]
"""A run whose candidates come from files."""
SearchRun = RunState[RecordedHistory]
"""A run in which a model writes the candidates."""


def begin(folder: Path, begun: RunStarted, problems: list[Problem], sources: Sources) -> BenchRun:
    """Write the problems, the candidates and the first event into the folder of a run."""
    rows = (
        {"ask": ask.model_dump(), "files": [item.model_dump() for item in files]}
        for ask, files in sources.items()
    )
    _write(folder / CANDIDATES, map(json.dumps, rows))
    return _begun(RunState(folder, begun, problems, FixedList(list(sources)), sources))


def begin_session(
    folder: Path, begun: RunStarted, problems: Sequence[Problem], settings: Config
) -> SearchRun:
    """Write the problems and the first event into the folder of a run.

    Raises:
        ConfigError: also, an option of the strategy is wrong.
    """
    library = open_library(settings.loop, problems, begun.device, folder)
    history = RecordedHistory(_strategy(problems, settings), library)
    return _begun(RunState(folder, begun, list(problems), history))


def _begun(run: RunState[AnyStrategy]) -> RunState[AnyStrategy]:
    _write(run.folder / PROBLEMS, (problem.to_json() for problem in run.problems))
    with EventLog(run.folder) as log:
        log.append(run.begun)
    return run


def _write(path: Path, lines: Iterable[str]) -> None:
    with writing(path), open(path, "w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)


def resume(folder: Path) -> BenchRun:
    """Return a run of `begin` as far as its log goes.

    A turn without a report stayed unjudged because of an internal error or of its problem. It
    waits to be judged again.
    """
    sources = Sources()

    def strategy(*_: object) -> FixedList:
        sources.update(sources_of(folder))
        return FixedList(list(sources))

    run = _resumed(folder, strategy)
    turns = turns_of(TurnFinished(turn=turn) for turn in run.finished)
    again = [turn.ask for turn in turns if is_unjudged(turn)]
    finished = [turn for turn in turns if not is_unjudged(turn)]
    return replace(run, sources=sources, finished=finished, waiting=[*run.waiting, *again])


def resume_session(folder: Path, settings: Config) -> SearchRun:
    """Return a run of `begin_session` as far as its log goes, with the settings that it has.

    Raises:
        RecordError: also, its strategy would issue other requests now.
    """

    def strategy(events: list[Event], begun: RunStarted) -> RecordedHistory:
        problems = problems_of(folder)
        library = open_library(settings.loop, problems, begun.device, folder)
        if library is not None:
            check_unchanged(library, events)
        return RecordedHistory(_strategy(problems, settings), library)

    return _resumed(folder, strategy)


def _resumed(
    folder: Path, make: Callable[[list[Event], RunStarted], AnyStrategy]
) -> RunState[AnyStrategy]:
    log_bytes = length_of(folder)
    events = list(read_events(folder))
    if not events or not isinstance(events[0], RunStarted):
        raise RecordError(f"{folder}: the first line of its event log is missing")
    strategy = make(events, events[0])
    return RunState(
        folder,
        events[0],
        problems_of(folder),
        strategy,
        finished=[event.turn for event in events if isinstance(event, TurnFinished)],
        waiting=replay(strategy, events),
        log_bytes=log_bytes,
    )


def is_unjudged(turn: Turn) -> bool:
    """Tell whether a turn has no report, so that another evaluation may help."""
    return any(item.verdict == "unjudged" and not item.report for item in turn.judgements)


def sources_of(folder: Path) -> Sources:
    """Return the candidates of a run."""

    def source(line: str) -> tuple[Ask, tuple[SourceFile, ...]]:
        row = json.loads(line)
        files = tuple(SourceFile(**item) for item in row["files"])
        return Ask.model_validate(upgrade(Ask, row["ask"])), files

    return dict(_parsed(folder / CANDIDATES, source))


def problems_of(folder: Path) -> list[Problem]:
    """Return the problems of a run."""
    return _parsed(folder / PROBLEMS, Problem.from_json)


def _parsed(path: Path, parse: Callable[[str], Parsed]) -> list[Parsed]:
    found = []
    for number, line in enumerate(lines_of(path), start=1):
        try:
            found.append(parse(line))
        except RecordError as error:
            raise RecordError(f"{path}:{number}: {error}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise RecordError(f"{path}:{number}: damaged: {damage_of(error)}") from error
    return found


def lines_of(path: Path) -> list[str]:
    """Return the lines of a file of a run."""
    try:
        # `splitlines` also splits at characters that JSON strings may contain.
        return [line for line in path.read_text(encoding="utf-8").split("\n") if line]
    except (OSError, UnicodeDecodeError) as error:
        raise RecordError(f"{path}: cannot be read: {reason_of(error)}") from error


def _strategy(problems: Sequence[Problem], settings: Config) -> RoundRobin:
    """Return the trajectories of a run, as many of each strategy and problem as there are samples.

    LimitedTrajectory N belongs to the strategy at place N // samples, with the seed N % samples.
    """
    section, score = settings.loop, score_of(settings.loop)
    limits = TrajectoryLimits(
        section.trajectory_judged,
        section.trajectory_device_s,
        section.final_trials,
        section.race_candidates,
        RaceRules(max_trials=section.race_trials),
    )
    members = []
    for problem in problems:
        for place, name in enumerate(strategy_names(section)):
            plain = name.removesuffix(RACED)
            make = cast("Factory", load("strategies", plain, packages=settings.plugins))
            for number in range(section.samples):
                plan = Plan(
                    problem=problem.id,
                    sample=place * section.samples + number,
                    turns=section.turns,
                    seed=section.seed + number,
                    options=options_of(section, name),
                )
                inner = make(plan, score)
                if plain != name:
                    inner = RacedAdmissions(inner, plan, score)
                members.append(LimitedTrajectory(inner, plan, score, limits))
    return RoundRobin(members)


def strategy_names(section: LoopSection) -> list[str]:
    """Return the strategies that a run compares, usually one.

    Raises:
        ConfigError: a name is empty or occurs twice.
    """
    names = [name.strip() for name in section.strategy.split(",")]
    if not all(names) or len(set(names)) < len(names):
        raise ConfigError(
            f"loop.strategy {section.strategy!r}: write the names of different strategies with "
            "commas between them"
        )
    return names


def options_of(section: LoopSection, name: str) -> dict[str, Any]:
    """Return the options of one strategy; with several strategies each has its own mapping.

    Raises:
        ConfigError: an option belongs to no strategy of the run.
    """
    names = strategy_names(section)
    if len(names) == 1:
        return section.options
    for key, value in section.options.items():
        if key not in names or not isinstance(value, dict):
            raise ConfigError(
                f"loop.options.{key}: with several strategies write loop.options.NAME.OPTION; "
                f"the strategies are {', '.join(names)}"
            )
    return dict(section.options.get(name, {}))


def score_of(section: LoopSection) -> Score:
    """Return the function that a run maximises: the reward of a turn's first judgement."""
    reward = REWARDS[section.reward]
    return lambda turn: reward(turn.judgements[0]) if turn.judgements else None


def budget_of(section: LoopSection) -> Budget:
    """Return the budget of a run."""
    return Budget(**{name: getattr(section, f"max_{name}") for name in Budget.model_fields})
