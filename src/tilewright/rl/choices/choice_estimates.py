"""From the rewards and values of episodes to advantages and figures, for training and replay."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.rl.choices.episode_records import EpisodeRecord
from tilewright.rl.generalised_advantages import generalised_advantages
from tilewright.rl.masked_tensors import masked
from tilewright.rl.presets import Preset

FAST = 1.2
"""Speed-up of the figure `fast@1.2`."""
Figures = dict[str, float | None]


@dataclass(frozen=True)
class ChoiceEstimate:
    """The advantages of a batch of episodes, and the returns that the critic learns."""

    episodes: tuple[EpisodeRecord, ...]
    advantages: tuple[tuple[float, ...], ...]
    returned: tuple[tuple[float, ...], ...]


def estimated(episodes: Sequence[EpisodeRecord], preset: Preset) -> ChoiceEstimate:
    """Return the advantages of a batch by `generalised_advantages`."""
    rewards = masked([item.rewards for item in episodes])
    values = masked([item.values for item in episodes])
    advantages, returned = generalised_advantages(
        rewards.values,
        values.values,
        rewards.known,
        gamma=preset.returns.gamma,
        gae_lambda=preset.choices.gae_lambda,
    )
    counts = [len(item.rewards) for item in episodes]

    def cut(table: list[list[float]]) -> tuple[tuple[float, ...], ...]:
        return tuple(tuple(row[:count]) for row, count in zip(table, counts, strict=True))

    return ChoiceEstimate(tuple(episodes), cut(advantages.tolist()), cut(returned.tolist()))


def estimate_figures(estimate: ChoiceEstimate) -> Figures:
    """Return means and counts over the decisions of a batch.

    `return` is the sum of an episode's rewards, and `best` its highest speed-up.
    """
    episodes = estimate.episodes
    rewards = [value for item in episodes for value in item.rewards]
    advantages = [value for row in estimate.advantages for value in row]
    reached = [rung for item in episodes for rung in item.reached]
    programs = [verdict for item in episodes for verdict in item.programs]
    fastest = [
        max((v.speedup or 0.0 for v in item.programs if v.verdict == "correct"), default=0.0)
        for item in episodes
    ]
    fast = [v.verdict == "correct" and (v.speedup or 0.0) > FAST for v in programs]
    return {
        "turns": float(len(rewards)),
        "reward": statistics.fmean(rewards),
        "return": statistics.fmean(sum(item.rewards) for item in episodes),
        "steps": len(rewards) / len(episodes),
        "stopped": sum(item.reached[-1] is None for item in episodes) / len(episodes),
        "unknown": float(sum(item.unknown for item in episodes)),
        "correct": _share([v.verdict == "correct" for v in programs]),
        "rejected": _share([v.verdict == "rejected" for v in programs]),
        "coverage": _mean([v.coverage for v in programs if v.coverage is not None]),
        "fast@1.2": _share(fast),
        "faster": _share([rung == "faster" for rung in reached if rung is not None]),
        "best": statistics.fmean(fastest),
        "advantage/most": max(advantages),
        "advantage/least": min(advantages),
    }


def _share(found: Sequence[bool]) -> float | None:
    return sum(found) / len(found) if found else None


def _mean(found: Sequence[float]) -> float | None:
    return statistics.fmean(found) if found else None
