"""Searches on synthetic programs for the bars of all strategies; also run as a process of its own.

    python -m benchmarks.search.system_runs FOLDER STRATEGY WIDTH PAUSE_MS

begins or continues a search in FOLDER. It appends a line to `evaluations.txt` for each evaluation.
"""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from tilewright.config import Config, load
from tilewright.loop.budget import BudgetGuard
from tilewright.loop.driver import drive
from tilewright.loop.policies.base import Message
from tilewright.loop.policies.scripted import Scripted
from tilewright.loop.rollout import RolloutWorker
from tilewright.loop.run_state import SearchRun, begin_session, budget_of, resume_session
from tilewright.records import Problem
from tilewright.records.event_log import EVENTS, EventLog
from tilewright.records.events import Ask, Turn
from tilewright.testing.strategy_checks import BEGUN, PROBLEM, random_reply
from tilewright.testing.synth_world import SynthWorld

TURNS = 60
OPTIONS: dict[str, dict[str, Any]] = {}
"""Options of strategies that need some to run on synthetic programs, by name."""
EVALUATIONS = "evaluations.txt"


def strategies() -> list[str]:
    """Return the names of all installed strategies of tilewright itself."""
    found = entry_points(group="tilewright.strategies")
    return sorted(item.name for item in found if item.value.startswith("tilewright."))


def settings_of(strategy: str, width: int, **more: object) -> Config:
    """Return the settings of a search; `more` are further settings of `loop`."""
    words = {"strategy": strategy, "turns": TURNS, "max_concurrency": width, "order": "asked"}
    overrides = [f"loop.{name}={value}" for name, value in {**words, **more}.items()]
    overrides += [
        f"loop.options.{name}={value}" for name, value in OPTIONS.get(strategy, {}).items()
    ]
    return load(overrides=overrides, environ={})


class CountedWorld(SynthWorld):
    """SynthKernel-1 whose evaluations take a time and are counted in a file. Lifetime: one run."""

    def __init__(self, folder: Path, pause_s: float) -> None:
        self._path, self._pause_s = folder / EVALUATIONS, pause_s

    def evaluate(self, draft: Turn, problem: Problem) -> Turn:
        """Judge a draft, after a line about it was written."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"{draft.ask.id} {draft.source}\n")
        time.sleep(self._pause_s)
        return super().evaluate(draft, problem)


Write = Callable[[Sequence[Message], Ask], str]


def search(
    folder: Path, settings: Config, world: SynthWorld, write: Write = random_reply
) -> SearchRun:
    """Begin or continue a search in a folder until its end; return it."""
    if (folder / EVENTS).exists() and (folder / EVENTS).stat().st_size:
        run = resume_session(folder, settings)
    else:
        run = begin_session(folder, BEGUN, [PROBLEM], settings)
    problems: Mapping[str, Problem] = {PROBLEM.id: PROBLEM}
    worker = RolloutWorker(world, Scripted(write), problems, run.strategy)
    guard = BudgetGuard(budget_of(settings.loop), run.finished, worker.max_cost, eval_timeout_s=0.0)
    with EventLog(folder, run.log_bytes) as log:
        for turn in drive(
            run.strategy,
            worker.play,
            log,
            max_concurrency=settings.loop.max_concurrency,
            waiting=run.waiting,
            admit=guard.reserve,
            settle=run.strategy.settle,
            in_order=settings.loop.order == "asked",
        ):
            guard.commit(turn)
    return run


def log_digest(folder: Path) -> str:
    """Return a digest of the event log; evaluations of this world take no recorded time."""
    return hashlib.sha256((folder / EVENTS).read_bytes()).hexdigest()


def main() -> int:
    folder, strategy, width, pause_ms = sys.argv[1:5]
    world = CountedWorld(Path(folder), float(pause_ms) / 1000)
    search(Path(folder), settings_of(strategy, int(width)), world)
    print(log_digest(Path(folder)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
