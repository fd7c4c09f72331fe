"""Worlds judge the replies of a policy while it learns: the evaluator, or a plug-in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Protocol, cast

from tilewright.config import Config
from tilewright.errors import ConfigError
from tilewright.executors.factory import device_model
from tilewright.loop.answer_evaluator import OnEvent, open_evaluator
from tilewright.loop.rollout_environment import AnswerJudge, RolloutEnvironment
from tilewright.problems.imported_sets import find_problems
from tilewright.records import Problem
from tilewright.records.events import WITHOUT_DEVICE
from tilewright.registry import load
from tilewright.rl.book_world import BookWorld, open_book
from tilewright.rl.synthetic_verdicts import SyntheticEvaluator, synthetic_store
from tilewright.rl.verdict_store import SYNTHETIC

EVALUATOR = "evaluator"
BOOK = "book"


class World(AnswerJudge, Protocol):
    """Offers problems, shows them, and judges replies to them. Lifetime: until `close`."""

    device: str
    """Model of the device that judges; `none` in a synthetic world."""

    def problems(self, address: str) -> list[Problem]:
        """Return the problems at an address, or raise `ProblemError`."""

    def stop(self) -> None:
        """Abort the evaluations under way."""

    def close(self) -> None:
        """Release all resources."""


class EvaluatorWorld(RolloutEnvironment):
    """The world that runs candidates with the evaluator. Lifetime: one run."""

    def __init__(self, settings: Config, folder: Path, on_event: OnEvent) -> None:
        self.device = device_model(settings, settings.eval.device)
        self._home = settings.home
        self._executor, judge = open_evaluator(settings, folder, on_event)
        super().__init__(settings, judge)

    def problems(self, address: str) -> list[Problem]:
        return find_problems(address, self._home)

    def stop(self) -> None:
        self._judge.stop()
        self._executor.kill()

    def close(self) -> None:
        self._executor.close()


def measures_time(world: World) -> bool:
    """Tell whether a world times programs, so that the sampler must not work meanwhile."""
    return world.device != WITHOUT_DEVICE and not world.device.startswith(SYNTHETIC)


def problems_at(name: str, settings: Config, addresses: Sequence[str]) -> list[list[Problem]]:
    """Return the problems of a world at each address, before any run folder exists.

    Raises:
        ProblemError: there are no such problems.
        InfrastructureError: the device of the evaluator is not here.
    """
    if name in (EVALUATOR, BOOK):
        if name == EVALUATOR:
            device_model(settings, settings.eval.device)
        return [find_problems(address, settings.home) for address in addresses]
    with closing(_plug_in(name, settings)) as world:
        return [world.problems(address) for address in addresses]


def open_world(
    name: str, settings: Config, folder: Path, on_event: OnEvent, verdicts: str = ""
) -> World:
    """Return the world of a name, which keeps its reports in `folder`.

    `verdicts` is the store of the world `book`: a file, or `synthetic`.

    Raises:
        ConfigError: the store is not there, or it holds verdicts under another key.
        RecordError: the store is damaged.
    """
    if name == EVALUATOR:
        return EvaluatorWorld(settings, folder, on_event)
    if name == BOOK:
        return _open_book(settings, folder, on_event, verdicts)
    return _plug_in(name, settings)


def _open_book(settings: Config, folder: Path, on_event: OnEvent, verdicts: str) -> World:
    if verdicts == SYNTHETIC:
        store = synthetic_store(folder / f"{SYNTHETIC}.jsonl.gz")
        return BookWorld(settings, store, folder, SyntheticEvaluator())
    if not verdicts:
        raise ConfigError(f"the world {BOOK} needs verdicts: name a store, or {SYNTHETIC}")
    return open_book(settings, folder, on_event, Path(verdicts))


def _plug_in(name: str, settings: Config) -> World:
    make = cast("Callable[[Config], World]", load("worlds", name, packages=settings.plugins))
    return make(settings)
