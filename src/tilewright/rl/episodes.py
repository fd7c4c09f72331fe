"""`reset` and `step` for trainers of others, in a run that can be looked at and replayed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from tilewright import config
from tilewright._version import __version__
from tilewright.config import Config
from tilewright.errors import ConfigError
from tilewright.executors.factory import open_executor
from tilewright.loop.answer_evaluator import AnswerEvaluator
from tilewright.loop.environment import Environment, Step
from tilewright.loop.policies.base import Message
from tilewright.loop.run_state import PROBLEMS
from tilewright.records import Problem
from tilewright.records.event_log import EventLog
from tilewright.records.events import Reply, RequestsIssued, RunStarted, Turn, TurnFinished
from tilewright.records.run_folder import create_run
from tilewright.registry import selected_checks

__all__ = ["Episodes"]


class Episodes:
    """Environments that share a judge and a run folder, in whose log each step is written.

    Lifetime: until `close`. Safe to use from several threads; an environment is one episode's.

    Args:
        settings: `loop.reward`, `loop.feedback`, `loop.language` and `loop.max_concurrency` of the
            loop's, and how is judged and where.
        name: what the run is called.

    Raises:
        ConfigError: the run folder cannot be written.
    """

    def __init__(self, settings: Config, name: str = "episodes") -> None:
        self._settings = settings
        self.folder: Path = create_run(settings.runs, config.dump(settings))
        executor = open_executor(settings, min(settings.loop.max_concurrency, 4))
        checks = selected_checks(settings.plugins)
        self._executor = executor
        self._judge = AnswerEvaluator(
            self.folder, lambda request: executor.evaluate(request, lambda *_: None, checks=checks)
        )
        self._lock = threading.Lock()
        self._met: set[str] = set()
        self._log = EventLog(self.folder)
        self._log.append(
            RunStarted(
                kind="episodes",
                name=name,
                problems=name,
                protocols=(settings.eval.protocol,),
                language=settings.loop.language,
                evaluator=__version__,
                device=settings.eval.device,
            )
        )

    def environment(self) -> Environment:
        """Return an environment; several may be stepped through at once."""
        return _Recorded(self._settings, self._judge, self._meet, self._tell)

    def _meet(self, problem: Problem) -> None:
        """Write a problem into the run when it is first met."""
        with self._lock:
            if problem.id in self._met:
                return
            self._met.add(problem.id)
            try:
                with open(self.folder / PROBLEMS, "a", encoding="utf-8") as file:
                    file.write(f"{problem.to_json()}\n")
            except OSError as error:
                raise ConfigError(f"{self.folder}: cannot be written: {error.strerror}") from error

    def _tell(self, turn: Turn) -> None:
        with self._lock:
            self._log.extend([RequestsIssued(limit=1, asks=(turn.ask,)), TurnFinished(turn=turn)])

    def close(self) -> None:
        """End what judges, and the log."""
        self._judge.stop()
        self._executor.close()
        self._log.close()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close."""
        self.close()


class _Recorded(Environment):
    """An environment whose steps are written down. Lifetime: one episode after the other."""

    def __init__(
        self,
        settings: Config,
        judge: AnswerEvaluator,
        meet: Callable[[Problem], None],
        tell: Callable[[Turn], None],
    ) -> None:
        super().__init__(settings, judge)
        self._meet, self._tell = meet, tell

    def reset(self, problem: Problem) -> tuple[Message, ...]:
        """Begin an episode; return its first prompt."""
        self._meet(problem)
        return super().reset(problem)

    async def step(self, reply: str | Reply) -> Step:
        """Judge an answer of this episode; it is on the disk when this returns."""
        step = await super().step(reply)
        self._tell(step.turn)
        return step
