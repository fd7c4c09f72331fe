"""Answers of a harness, judged in an episode; their figures under our names, for any harness."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tilewright import config
from tilewright.api import evaluate_request
from tilewright.config import Config
from tilewright.errors import ConfigError, InfrastructureError, NoVerdict, ProblemError, suggestion
from tilewright.integrations.verdict_table import HARNESSES, row_of_summary
from tilewright.loop.answer_evaluator import unjudged
from tilewright.loop.policies.base import Message
from tilewright.loop.rollout_environment import RolloutEnvironment
from tilewright.problems.imported_sets import find_problems
from tilewright.problems.requests import build_request
from tilewright.records import Candidate, Problem
from tilewright.records.events import EvalSummary
from tilewright.records.outcome import Verdict
from tilewright.rl.episodes import Episodes
from tilewright.scoring.report_text import reason_of
from tilewright.scoring.rewards import REWARDS

VERDICTS: tuple[Verdict, ...] = ("correct", "incorrect", "failed", "rejected", "unjudged")


@dataclass(frozen=True)
class AnswerFigures:
    """The verdict and the figures of one answer; `None`: not measured, or no verdict."""

    problem: str
    verdict: Verdict
    row: str
    """The row of the published table."""
    reason: str
    reward: float | None
    """By the setting `loop.reward`; `None`: the answer is unjudged."""
    speedup: float | None
    low: float | None
    high: float | None
    coverage: float | None
    seconds: float
    """Wall time of the evaluation."""
    findings: tuple[str, ...]
    labels: tuple[str, ...]
    protocol: str
    feedback: str
    report: str
    """Path of the report; empty: the answer holds no candidate, or no evaluation ended."""
    run: str
    """The run folder, which `tilewright view` opens."""

    def fields(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return asdict(self) | {"findings": list(self.findings), "labels": list(self.labels)}

    @classmethod
    def of_fields(cls, fields: Mapping[str, Any]) -> AnswerFigures:
        """Return the figures of an answer from its fields, as a harness has stored them."""
        named = {name: tuple(fields[name]) for name in ("findings", "labels")}
        return cls(**{**fields, **named})

    def metrics(self) -> dict[str, float | None]:
        """Return the figures as numbers: each verdict is a metric that is 0 or 1."""
        flags: dict[str, float | None] = {name: float(self.verdict == name) for name in VERDICTS}
        numbers = {name: getattr(self, name) for name in ("speedup", "low", "high", "coverage")}
        findings = {f"finding_{name}": 1.0 for name in self.findings}
        timed = {"timed": float(self.speedup is not None)}
        return {**flags, **numbers, **timed, "seconds": self.seconds, **findings}


class Episode:
    """One episode of a harness. Lifetime: from `reset` to the next one."""

    def __init__(self, episodes: Episodes, settings: Config) -> None:
        self._episodes, self._protocol = episodes, settings.eval.protocol
        self._environment: RolloutEnvironment = episodes.environment()
        self._problem: Problem | None = None

    def reset(self, problem: Problem) -> tuple[Message, ...]:
        """Begin the episode; return its first prompt."""
        self._problem = problem
        return self._environment.reset(problem)

    async def answer(self, text: str) -> tuple[AnswerFigures, tuple[Message, ...]]:
        """Judge an answer; return its figures and the prompt for the next one.

        An evaluation that fails for a reason of our own is an unjudged answer.
        """
        if self._problem is None:
            raise RuntimeError("no episode: call reset(problem) first")
        folder = self._episodes.folder
        try:
            step = await self._environment.step(text)
        except InfrastructureError as error:
            lost = unjudged(self._protocol, str(error))
            return judged_answer(self._problem.id, lost, None, "", folder), ()
        summary, turn = step.turn.judgements[0], step.turn
        found = judged_answer(self._problem.id, summary, step.reward, turn.feedback, folder)
        return found, step.messages


def judged_answer(
    problem: str, summary: EvalSummary, reward: float | None, feedback: str, folder: Path
) -> AnswerFigures:
    """Return the figures of a summary. The table, and no rule of its own, decides the reward."""
    row = row_of_summary(summary)
    earned = {"none": None, "zero": 0.0}.get(HARNESSES[row].reward, reward)
    return AnswerFigures(
        problem=problem,
        verdict=summary.verdict,
        row=str(row),
        reason=summary.reason,
        reward=earned,
        **{name: getattr(summary, name) for name in ("speedup", "low", "high", "coverage")},
        seconds=summary.seconds,
        findings=summary.findings,
        labels=summary.labels,
        protocol=summary.protocol,
        feedback=feedback,
        report=str(folder.resolve() / summary.report) if summary.report else "",
        run=str(folder.resolve()),
    )


_shared: dict[tuple[str, str], Episodes] = {}
_opening = threading.Lock()


def shared_episodes(settings: Config, name: str) -> Episodes:
    """Return the episodes of this process for these settings: one run folder, closed at exit."""
    # Not the text of a settings file: that takes milliseconds, and each answer asks.
    key = (name, settings.model_dump_json())
    with _opening:
        if key not in _shared:
            _shared[key] = Episodes(settings, name)
            atexit.register(_shared[key].close)
        return _shared[key]


def harness_settings(assignments: Sequence[str], reward: str = "") -> Config:
    """Return the settings of a harness; `reward` is the setting `loop.reward`, if it is given.

    Raises:
        ConfigError: a setting or the reward is unknown.
    """
    if reward and reward not in REWARDS:
        hint = suggestion(reward, REWARDS) or f"known: {', '.join(REWARDS)}"
        raise ConfigError(f"reward {reward!r} is unknown; {hint}")
    chosen = [f"loop.reward={reward}"] if reward else []
    return config.load(overrides=[*assignments, *chosen])


def judgeable_problems(address: str, settings: Config) -> list[Problem]:
    """Return the problems at an address.

    Raises:
        ConfigError: there is none; the message says how to get them. Harnesses report it as theirs.
    """
    try:
        return find_problems(address, settings.home)
    except ProblemError as error:
        raise ConfigError(str(error)) from error


def prompt_text(messages: Sequence[Message]) -> tuple[str, str]:
    """Return the system text and the text of the last message of a prompt."""
    system = "\n\n".join(item.text for item in messages if item.role == "system")
    return system, messages[-1].text


def reference_is_correct(problem: Problem, settings: Config) -> bool:
    """Judge the reference as a candidate for its own problem.

    Raises:
        NoVerdict: the evaluation gives no verdict.
    """
    entry = "Model" if problem.kind == "module" else "reference"
    candidate = Candidate(language="torch", files=(problem.source,), entry=entry)
    untimed = settings.eval.timing.model_copy(update={"enabled": False})
    settings = settings.with_eval(timing=untimed)
    report = evaluate_request(build_request(candidate, problem, settings), settings)
    if report.verdict == "unjudged":
        raise NoVerdict(f"{problem.id}: its reference is unjudged: {reason_of(report)}")
    return report.verdict == "correct"
