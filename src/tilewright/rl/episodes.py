"""`reset` and `step` for other trainers, in a run that `view` and `train replay` read."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from pathlib import Path

from tilewright import config
from tilewright._version import __version__
from tilewright.config import Config
from tilewright.errors import writing
from tilewright.executors.base import Executor
from tilewright.loop.answer_evaluator import AnswerEvaluator, open_evaluator
from tilewright.loop.policies.base import Message
from tilewright.loop.rollout_environment import RolloutEnvironment, Step
from tilewright.records import Problem
from tilewright.records.event_log import EventLog
from tilewright.records.events import Reply, RequestsIssued, RunStarted, Turn, TurnFinished
from tilewright.records.run_folder import PROBLEMS, create_run


class Episodes(AbstractContextManager["Episodes"]):
    """Environments that share a judge and a run folder; the event log holds each step.

    Lifetime: until `close`. Several threads may use it; each environment belongs to one episode.
    It reads the settings of the evaluation and of the executor, and of `loop` the reward, the
    feedback, the language and the concurrency. Several may share an `executor`, which the caller
    closes.

    Raises:
        ConfigError: the run folder cannot be written.
    """

    def __init__(
        self, settings: Config, name: str = "episodes", executor: Executor | None = None
    ) -> None:
        self._settings = settings
        self.folder: Path = create_run(settings.runs, config.dump(settings))
        self._owns_executor = executor is None
        self._executor, self._judge = open_evaluator(settings, self.folder, executor=executor)
        self._lock = threading.Lock()
        self._recorded: set[str] = set()
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

    def environment(self) -> RolloutEnvironment:
        """Return an environment; several may take steps at the same time."""
        return _Recorded(self, self._settings, self._judge)

    def record_problem(self, problem: Problem) -> None:
        """Write a problem into the run, unless it is there."""
        with self._lock:
            if problem.id in self._recorded:
                return
            self._recorded.add(problem.id)
            with writing(self.folder), open(self.folder / PROBLEMS, "a", encoding="utf-8") as file:
                file.write(f"{problem.to_json()}\n")

    def record_turn(self, turn: Turn) -> None:
        """Write a turn into the event log."""
        with self._lock:
            self._log.extend([RequestsIssued(limit=1, asks=(turn.ask,)), TurnFinished(turn=turn)])

    def close(self) -> None:
        """Release the judge and the log."""
        self._judge.stop()
        if self._owns_executor:
            self._executor.close()
        self._log.close()

    def __exit__(self, *_: object) -> None:
        self.close()


class _Recorded(RolloutEnvironment):
    """An environment whose steps are in the event log. Lifetime: one episode after the other."""

    def __init__(self, episodes: Episodes, settings: Config, judge: AnswerEvaluator) -> None:
        super().__init__(settings, judge)
        self._episodes = episodes

    def reset(self, problem: Problem) -> tuple[Message, ...]:
        """Begin an episode; return its first prompt."""
        self._episodes.record_problem(problem)
        return super().reset(problem)

    async def step(self, reply: str | Reply) -> Step:
        """Judge an answer of this episode; the disk has it when this returns."""
        step = await super().step(reply)
        self._episodes.record_turn(step.turn)
        return step
