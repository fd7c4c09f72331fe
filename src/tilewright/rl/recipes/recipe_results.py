"""Rewards of the trainings of a recipe, at the start and at the end. No torch."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from tilewright.loop.candidate_text import code_of
from tilewright.loop.estimates import NORMAL_95
from tilewright.records.event_log import EVENTS, read_events
from tilewright.records.events import EvalSummary, Turn, TurnFinished
from tilewright.rl.prompt_contexts import contexts_of_run
from tilewright.rl.rewards.turn_reward import JudgedTurn, find_reward
from tilewright.rl.study.study_folder import TRAINED, run_in
from tilewright.rl.training_config import TrainConfig
from tilewright.scoring.rewards import without_checks

Rewards = dict[str, list[float]]
"""Rewards of judged turns, by problem."""


@dataclass(frozen=True)
class Gain:
    """The mean reward of a training's last steps against that of its first one.

    The first batch is sampled before any update, so it shows the model that the training began
    with. The interval is of the mean over problems, for these problems.
    """

    start: float
    end: float
    low: float
    high: float
    """Ends of the 95 % interval of the difference."""
    programs: int
    """Programs that the training had judged."""


def gain_of(place: Path, settings: TrainConfig, last_steps: int) -> Gain | None:
    """Return what a training gained; `None`: its log has no two steps with judged turns."""
    by_step = rewards_by_step(place, settings)
    steps = sorted(by_step)
    if len(steps) < 2:
        return None
    first, last = by_step[steps[0]], _joined([by_step[step] for step in steps[1:][-last_steps:]])
    shared = sorted(first.keys() & last.keys())
    if not shared:
        return None
    start = statistics.fmean(statistics.fmean(first[name]) for name in shared)
    end = statistics.fmean(statistics.fmean(last[name]) for name in shared)
    half = NORMAL_95 * math.sqrt(
        sum(_variance_of_mean(part[name]) for name in shared for part in (first, last))
    ) / len(shared)  # fmt: skip
    programs = sum(len(values) for step in by_step.values() for values in step.values())
    return Gain(start, end, end - start - half, end - start + half, programs)


def rewards_by_step(place: Path, settings: TrainConfig) -> dict[str, Rewards]:
    """Return the rewards of judged turns that a training learned from, by batch and problem."""
    run, section = run_in(place), settings.estimator().reward
    reward, checks = find_reward(section.function), settings.settings.reward.checks
    found: dict[str, Rewards] = defaultdict(lambda: defaultdict(list))
    if run is None or not (run / EVENTS).exists():
        return {}
    known = {name: _paid(turn, checks) for name, turn in contexts_of_run(run).turns().items()}
    for event in read_events(run, left_out=lambda _: None):
        if not isinstance(event, TurnFinished) or not event.turn.ask.id.startswith(TRAINED):
            continue
        turn, parent = event.turn, event.turn.ask.parents[-1:]
        known[turn.ask.id] = verdict = _paid(turn, checks)
        if verdict is None:
            continue
        before = known.get(parent[0]) if parent else None
        judged = JudgedTurn(verdict, code_of(turn), before, bool(parent))
        value = reward.reward(judged, section)
        if value is not None:
            found[turn.ask.id.partition("/")[0]][turn.ask.problem].append(value)
    return found


def _paid(turn: Turn, checks: bool) -> EvalSummary | None:
    verdict = turn.judgements[0] if turn.judgements else None
    if verdict is None or verdict.verdict == "unjudged":
        return None
    return verdict if checks else without_checks(verdict)


def _joined(parts: list[Rewards]) -> Rewards:
    found: Rewards = defaultdict(list)
    for part in parts:
        for name, values in part.items():
            found[name] += values
    return found


def _variance_of_mean(values: list[float]) -> float:
    return statistics.variance(values) / len(values) if len(values) > 1 else 0.0
