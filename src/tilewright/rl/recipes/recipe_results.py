"""Rewards of the trainings of a recipe, at the start and at the end. No torch."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from tilewright.loop.candidate_text import code_of
from tilewright.records.event_log import EVENTS, read_events
from tilewright.records.events import EvalSummary, Turn, TurnFinished
from tilewright.rl.choices.choice_batches import rules_of
from tilewright.rl.choices.choice_log import is_choice_run, read_episodes
from tilewright.rl.prompt_contexts import contexts_of_run
from tilewright.rl.rewards.turn_reward import JudgedTurn, find_reward
from tilewright.rl.study.directions import STUDENT_95
from tilewright.rl.study.study_folder import TRAINED, run_in
from tilewright.rl.training_config import TrainConfig
from tilewright.scoring.rewards import without_checks


@dataclass(frozen=True)
class Gain:
    """The mean reward of a training's last steps against that of its first one.

    The first batch is sampled before any update, so it shows the model that the training began
    with. Both means are over the problems that both have, or over all if they share none.
    """

    start: float
    end: float
    low: float | None
    high: float | None
    """Ends of the 95 % interval of the difference; `None`: some problem has too few observations.
    An observation is a trajectory, all of a stored context's trajectories, or an episode, whose
    rewards are added."""
    programs: int
    """Programs that the training had judged."""


@dataclass(frozen=True)
class GainObservation:
    """The mean reward of trajectories that depend on each other."""

    problem: str
    reward: float
    programs: int


def gain_of(
    place: Path, settings: TrainConfig, last_steps: int, first_place: Path | None = None
) -> Gain | None:
    """Return what a training gained; `None`: its log has no two steps with judged turns.

    With `first_place`, the first batch is that of the training there. `settings` pay both.
    """
    by_step = observations(place, settings)
    steps = sorted(by_step)
    if len(steps) < 2:
        return None
    last = [item for step in steps[1:][-last_steps:] for item in by_step[step]]
    before = observations(first_place, settings) if first_place else by_step
    if not before:
        return None
    first = before[min(before)]
    shared = {item.problem for item in first}
    shared &= {item.problem for item in last}
    parts = [_values(part, shared) for part in (first, last)]
    start, end = (statistics.fmean(map(statistics.fmean, part.values())) for part in parts)
    programs = sum(item.programs for step in by_step.values() for item in step)
    half = _half_width([list(part.values()) for part in parts])
    if half is None:
        return Gain(start, end, None, None, programs)
    return Gain(start, end, end - start - half, end - start + half, programs)


def _values(part: list[GainObservation], shared: set[str]) -> dict[str, list[float]]:
    """Return the rewards by problem, of the shared ones; without shared ones, all together."""
    found: dict[str, list[float]] = defaultdict(list)
    for item in part:
        if not shared or item.problem in shared:
            found[item.problem if shared else ""].append(item.reward)
    return found


def _half_width(parts: list[list[list[float]]]) -> float | None:
    """Return half of the 95 % interval of a difference of means over problems.

    Student's quantile with the degrees of freedom of Welch 1947 and Satterthwaite 1946.
    """
    terms = []
    for part in parts:
        for values in part:
            if len(values) < 2:
                return None
            variance = statistics.variance(values) / len(values) / len(part) ** 2
            terms.append((variance, len(values) - 1))
    whole = math.fsum(variance for variance, _ in terms)
    if whole == 0:
        return 0.0
    degrees = whole**2 / math.fsum(variance**2 / free for variance, free in terms)
    place = min(max(int(degrees), 1), len(STUDENT_95))
    return STUDENT_95[place - 1] * math.sqrt(whole)


def observations(place: Path, settings: TrainConfig) -> dict[str, list[GainObservation]]:
    """Return the observations of judged turns that a training learned from, by batch."""
    run, section = run_in(place), settings.estimator().reward
    reward, checks = find_reward(section.function), settings.settings.reward.checks
    if run is None or not (run / EVENTS).exists():
        return {}
    if is_choice_run(run):
        return _episodes(run, settings)
    stored = contexts_of_run(run).turns()
    known = {name: _paid(turn, checks) for name, turn in stored.items()}
    rewards: dict[str, dict[tuple[str, str], list[float]]] = defaultdict(lambda: defaultdict(list))
    for event in read_events(run, left_out=lambda _: None):
        if not isinstance(event, TurnFinished) or not event.turn.ask.id.startswith(TRAINED):
            continue
        turn, parent = event.turn, event.turn.ask.parents[-1:]
        known[turn.ask.id] = verdict = _paid(turn, checks)
        if verdict is None:
            continue
        before = known.get(parent[0]) if parent else None
        value = reward.reward(JudgedTurn(verdict, code_of(turn), before, bool(parent)), section)
        if value is not None:
            unit = turn.ask.id.rpartition("#" if stored else ".")[0]
            batch = turn.ask.id.partition("/")[0]
            rewards[batch][turn.ask.problem, unit].append(value)
    return {
        batch: [
            GainObservation(problem, statistics.fmean(values), len(values))
            for (problem, _), values in found.items()
        ]
        for batch, found in rewards.items()
    }


def _episodes(run: Path, settings: TrainConfig) -> dict[str, list[GainObservation]]:
    """Return the sum of rewards of each episode that chose edits, by batch."""
    found = read_episodes(run, rules_of(settings.estimator()))
    return {
        batch: [
            GainObservation(item.problem, math.fsum(item.rewards), len(item.programs))
            for item in episodes
        ]
        for batch, episodes in found.items()
        if batch.startswith(TRAINED)
    }


def _paid(turn: Turn, checks: bool) -> EvalSummary | None:
    verdict = turn.judgements[0] if turn.judgements else None
    if verdict is None or verdict.verdict == "unjudged":
        return None
    return verdict if checks else without_checks(verdict)
