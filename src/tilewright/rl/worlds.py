"""Worlds judge the replies of a policy while it learns: the evaluator, or a plug-in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol, cast

from tilewright.config import Config
from tilewright.executors.factory import device_model
from tilewright.loop.answer_evaluator import OnEvent, open_evaluator
from tilewright.loop.rollout_environment import AnswerJudge, RolloutEnvironment
from tilewright.problems.imported_sets import find_problems
from tilewright.records import Problem
from tilewright.registry import load

EVALUATOR = "evaluator"


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


def open_world(name: str, settings: Config, folder: Path, on_event: OnEvent) -> World:
    """Return the world of a name, which keeps its reports in `folder`."""
    if name == EVALUATOR:
        return EvaluatorWorld(settings, folder, on_event)
    make = cast("Callable[[Config], World]", load("worlds", name, packages=settings.plugins))
    return make(settings)
