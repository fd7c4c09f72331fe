"""Fresh scores: the last programs of each arm, evaluated again after all training. No torch.

An arm may fit the noise of the stored timings. So the page compares its last programs by
evaluations that no training has seen.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from typing import Any

from tilewright.config import load
from tilewright.problems.imported_sets import find_problems
from tilewright.records import Problem
from tilewright.records.event_log import read_events
from tilewright.records.events import EvalSummary, Stepped, Turn, TurnFinished
from tilewright.rl.study import study_folder
from tilewright.rl.study.study_folder import StudyFolder, run_in
from tilewright.rl.verdict_store import VerdictStore

FRESH = "fresh-verdicts.jsonl.gz"
FAST = 1.2
"""Speed-up above which a program is fast, as in the figure fast@1.2."""


def last_turns(folder: StudyFolder, name: str, seed: int) -> list[Turn]:
    """Return the judged turns of the last trained steps of an arm."""
    run = run_in(folder.arm(name, seed))
    if run is None:
        return []
    events = list(read_events(run, left_out=lambda _: None))
    batches = sorted(
        {item.batch for item in events if isinstance(item, Stepped)
         and item.batch.startswith(study_folder.TRAINED)}
    )  # fmt: skip
    last = set(batches[-folder.config.last_steps :])
    turns = {item.turn.ask.id: item.turn for item in events if isinstance(item, TurnFinished)}
    return [
        turn
        for turn in turns.values()
        if turn.ask.id.partition("/")[0] in last and turn.judgements[0].verdict != "unjudged"
    ]


def last_programs(folder: StudyFolder) -> list[tuple[Problem, str]]:
    """Return the different correct programs of the last steps of all arms."""
    problems = {item.id: item for item in find_problems(folder.config.group, load().home)}
    found = {
        (turn.ask.problem, turn.code): None
        for name, seed in folder.config.runs()
        for turn in last_turns(folder, name, seed)
        if turn.judgements[0].verdict == "correct"
    }
    return [(problems[problem], code) for problem, code in found]


def fresh_figures(
    folder: StudyFolder, store: VerdictStore, name: str, seed: int
) -> dict[str, float | None]:
    """Return the figures of the last turns of an arm, as stored and by fresh evaluations.

    `differences` is the number of programs with both, `most_log` and `median_log` their absolute
    log ratios of speed-ups.
    """
    problems = {item.id: item for item in find_problems(folder.config.group, load().home)}
    turns = last_turns(folder, name, seed)
    pairs = {
        (turn.ask.problem, turn.code): (turn.judgements[0].speedup, fresh)
        for turn in turns
        if (fresh := _speedup(store.evaluations(problems[turn.ask.problem], turn.code)))
    }
    logs = [abs(math.log(ours / old)) for old, ours in pairs.values() if old]
    again = [_again(turn, pairs) for turn in turns]
    return {
        "fast@1.2": _share([turn.judgements[0].speedup for turn in turns]),
        "fresh_fast@1.2": _share(again),
        "differences": float(len(logs)),
        "median_log": statistics.median(logs) if logs else None,
        "most_log": max(logs, default=None),
    }


def _again(turn: Turn, pairs: dict[tuple[str, str], tuple[float | None, float]]) -> float | None:
    found = pairs.get((turn.ask.problem, turn.code))
    return None if found is None else found[1]


def _speedup(evaluations: Sequence[EvalSummary]) -> float | None:
    """Return the geometric mean of the speed-ups; `None`: an evaluation was not correct."""
    speedups = list(_speedups(evaluations))
    whole = speedups and len(speedups) == len(evaluations)
    return statistics.geometric_mean(speedups) if whole else None


def _speedups(evaluations: Sequence[EvalSummary]) -> Iterator[float]:
    for item in evaluations:
        if item.verdict == "correct" and item.speedup is not None:
            yield item.speedup


def _share(speedups: Sequence[float | None]) -> float | None:
    fast = [speedup is not None and speedup > FAST for speedup in speedups]
    return sum(fast) / len(fast) if fast else None


def fresh_log(folder: StudyFolder) -> dict[str, Any]:
    """Return the fresh figures of each arm and seed; empty before they were evaluated."""
    path = folder.path / FRESH
    if not path.exists():
        return {}
    store = VerdictStore.read(path)
    return {
        f"{name}, seed {seed}": fresh_figures(folder, store, name, seed)
        for name, seed in folder.config.runs()
    }
