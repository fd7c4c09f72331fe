"""Rewards for replies, which other trainers request. No torch is loaded here."""

from __future__ import annotations

import atexit
import json
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tilewright import config
from tilewright.config import Config
from tilewright.errors import ConfigError, InfrastructureError, ProblemError
from tilewright.executors.base import Executor
from tilewright.executors.factory import open_executor
from tilewright.executors.retrying import Backoff
from tilewright.languages.reply_parser import parse_reply
from tilewright.loop.answer_evaluator import MAX_REASON, MAX_WORKERS, summary_of_report
from tilewright.loop.rollout_environment import requested, unusable, within_turn
from tilewright.problems.imported_sets import find_one
from tilewright.problems.loader import parse_problem
from tilewright.records import Problem
from tilewright.records.base import digest_text
from tilewright.records.codes import Stage
from tilewright.records.events import EvalSummary
from tilewright.registry import selected_checks
from tilewright.scoring.report_text import cut
from tilewright.scoring.rewards import REWARDS, without_checks


@dataclass(frozen=True)
class Scored:
    """The reward and the verdict of a reply."""

    reward: float | None
    """`None` for an unjudged reply under `reward.on_unjudged: none`."""
    judgement: EvalSummary


class Scorer:
    """Judges replies and computes rewards. Lifetime: until `close`. Several threads may use it.

    Under `reward.on_unjudged: raise`, one unjudged reply ends the batch.
    """

    def __init__(self, settings: Config) -> None:
        self._settings = within_turn(settings)
        self._reward = REWARDS[settings.reward.name]
        self._executor: Executor | None = None
        self._lock = threading.Lock()
        self._over = threading.Event()

    def score(self, problem: Problem, reply: str) -> Scored:
        """Judge a reply, in several attempts if needed.

        Raises:
            InfrastructureError: all attempts failed under `reward.on_unjudged: raise`.
        """
        section = self._settings.reward
        backoff = Backoff(section.retry_delay_s, attempts=section.retries + 1)
        judgement = self._judged(problem, reply)
        while judgement.verdict == "unjudged":
            delay_s = backoff.next_delay()
            if delay_s is None or self._over.wait(delay_s):
                break
            judgement = self._judged(problem, reply)
        else:
            seen = judgement if section.checks else without_checks(judgement)
            return Scored(self._reward(seen), judgement)
        if section.on_unjudged == "raise":
            raise InfrastructureError(
                f"{problem.id}: a reply could not be judged in {backoff.failed} attempts: "
                f"{judgement.reason}; set reward.on_unjudged to zero or none to continue the "
                "training without a verdict"
            )
        return Scored(0.0 if section.on_unjudged == "zero" else None, judgement)

    def scores(self, items: Sequence[tuple[Problem, str]]) -> list[Scored]:
        """Judge several replies at once; results are in their order, and errors as in `score`."""
        with ThreadPoolExecutor(self._settings.reward.concurrency) as pool:
            return list(pool.map(lambda item: self.score(*item), items))

    def _judged(self, problem: Problem, reply: str) -> EvalSummary:
        """Judge a reply once."""
        protocol = self._settings.eval.protocol
        parsed = parse_reply(reply, problem.entry)
        if not parsed.files:
            return unusable(protocol, problem, parsed.reason)
        request = requested(parsed.files, problem, self._settings)
        if isinstance(request, EvalSummary):
            return request
        checks = selected_checks(self._settings.plugins)
        try:
            report = self._opened().evaluate(request, lambda *_: None, checks=checks)
        except (InfrastructureError, ProblemError) as error:
            reason = cut(str(error), MAX_REASON)
            return EvalSummary(protocol=protocol, verdict="unjudged", reason=reason)
        seconds = next((stage.wall_s for stage in report.stages if stage.name == Stage.TOTAL), 0.0)
        return summary_of_report(report, "", seconds)

    def _opened(self) -> Executor:
        with self._lock:
            if self._executor is None:
                workers = min(self._settings.reward.concurrency, MAX_WORKERS)
                self._executor = open_executor(self._settings, workers)
            return self._executor

    def close(self) -> None:
        """Release the executor; no attempt begins after this."""
        self._over.set()
        with self._lock:
            if self._executor is not None:
                self._executor.close()
                self._executor = None


_scorers: dict[str, Scorer] = {}
_opening = threading.Lock()


def scorer_of(settings: Config) -> Scorer:
    """Return the scorer of this process for these settings; it closes when the process ends."""
    name = config.dump(settings)
    with _opening:
        if name not in _scorers:
            _scorers[name] = Scorer(settings)
            atexit.register(_scorers[name].close)
        return _scorers[name]


def problem_of(fields: Mapping[str, Any], settings: Config) -> Problem:
    """Return the problem of a row of a data set.

    The field `problem` comes first: a problem record as JSON or as a mapping, or an address. Else
    `reward_model.ground_truth`, `ground_truth` or `reference` has a record or the source of a
    reference. Its name is the `uuid` or `name` in `extra_info`.

    Raises:
        ConfigError: the row has none of these fields.
        ProblemError: the field holds no problem.
    """
    given = fields.get("problem")
    if isinstance(given, Mapping):
        return _parsed_record(json.dumps(given))
    if isinstance(given, str) and given.lstrip().startswith("{"):
        return _parsed_record(given)
    if isinstance(given, str) and given:
        return find_one(given, settings.home)
    model, extra = (
        item if isinstance(item := fields.get(name), Mapping) else {}
        for name in ("reward_model", "extra_info")
    )
    texts = (model.get("ground_truth"), fields.get("ground_truth"), fields.get("reference"))
    text = next((item for item in texts if isinstance(item, str) and item.strip()), None)
    if text is None:
        raise ConfigError(
            "a row names no problem: give `problem`, `reward_model.ground_truth`, "
            f"`ground_truth` or `reference`; it has {', '.join(sorted(fields)) or 'nothing'}"
        )
    if text.lstrip().startswith("{"):
        return _parsed_record(text)
    name = extra.get("uuid", extra.get("name"))
    return _parsed_source(text, None if name is None else str(name))


_parsed_record = lru_cache(1024)(Problem.from_json)


@lru_cache(1024)
def _parsed_source(text: str, name: str | None) -> Problem:
    called = name or digest_text(text)[:12]
    stem = "".join(char if char.isalnum() and char.isascii() else "_" for char in called)
    return parse_problem(text, f"given/{stem}", stem, f"the reference {called}")
