"""Where a policy's replies are judged while it learns: the evaluator, or a made-up landscape."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, cast

from tilewright.config import Config
from tilewright.executors.factory import device_model, open_executor
from tilewright.loop.answer_evaluator import AnswerEvaluator
from tilewright.loop.environment import AnswerJudge, Environment
from tilewright.loop.policies.base import Message
from tilewright.problems.imported_sets import find_problems
from tilewright.records import Problem
from tilewright.records.events import Ask, Reply, Turn
from tilewright.registry import load, selected_checks

__all__ = ["EVALUATOR", "NOWHERE", "Seen", "World", "open_world"]

EVALUATOR = "evaluator"
NOWHERE = "none"
"""The device of a world that has none."""
MAX_WORKERS = 4
Seen = Callable[[str, dict[str, object]], None]


class World(AnswerJudge, Protocol):
    """Has problems, shows them, and judges what is written for them. Lifetime: until `close`."""

    device: str
    """The model of the device that judges; `none` for a made-up world."""

    def problems(self, address: str) -> list[Problem]:
        """Return the problems at an address.

        Raises:
            ProblemError: there is none.
        """

    def stop(self) -> None:
        """End what is being judged."""

    def close(self) -> None:
        """Let go of everything."""


class Judged:
    """The evaluator, which really runs what is written. Lifetime: one run."""

    def __init__(self, settings: Config, folder: Path, seen: Seen) -> None:
        self.device = device_model(settings, settings.eval.device)
        self._settings = settings
        self._executor = open_executor(settings, min(settings.loop.max_concurrency, MAX_WORKERS))
        checks = selected_checks(settings.plugins)
        lock = threading.Lock()

        def shown(event: str, fields: dict[str, object]) -> None:
            with lock:
                seen(event, fields)

        executor = self._executor
        self._judge = AnswerEvaluator(
            folder, lambda ask: executor.evaluate(ask, shown, checks=checks)
        )
        self._environment = Environment(settings, self._judge)

    def problems(self, address: str) -> list[Problem]:
        """Return the problems at an address.

        Raises:
            ProblemError: there is none.
        """
        return find_problems(address, self._settings.home)

    def prompt(
        self, problem: Problem, shown: Sequence[Turn], instruction: str = ""
    ) -> tuple[Message, ...]:
        """Return the messages that ask for an answer."""
        return self._environment.prompt(problem, shown, instruction)

    def evaluate_reply(self, ask: Ask, problem: Problem, reply: Reply, prompt: str = "") -> Turn:
        """Judge a reply.

        Raises:
            InfrastructureError: our own side fails again and again.
        """
        return self._environment.evaluate_reply(ask, problem, reply, prompt)

    def record_refusal(self, ask: Ask, prompt: str, reason: str) -> Turn:
        """Return the turn of an ask that its policy refused."""
        return self._environment.record_refusal(ask, prompt, reason)

    def stop(self) -> None:
        """End what is being judged."""
        self._judge.stop()
        self._executor.kill()

    def close(self) -> None:
        """Let go of everything."""
        self._executor.close()


def open_world(name: str, settings: Config, folder: Path, seen: Seen) -> World:
    """Return the world of a name; it keeps its reports in `folder`.

    Raises:
        PluginError: there is none.
        InfrastructureError: its device is not here.
    """
    if name == EVALUATOR:
        return Judged(settings, folder, seen)
    make = cast("Callable[[Config], World]", load("worlds", name, packages=settings.plugins))
    return make(settings)
