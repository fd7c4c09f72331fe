"""Rewards and advantages of a run that learned to choose, computed again from its log alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilewright.rl.choices.choice_batches import rules_of
from tilewright.rl.choices.choice_estimates import (
    ChoiceEstimate,
    Figures,
    estimate_figures,
    estimated,
)
from tilewright.rl.choices.choice_log import read_episodes
from tilewright.rl.presets import Preset
from tilewright.rl.training_config import load_training


@dataclass(frozen=True)
class ReplayedChoices:
    """A batch of decisions with its advantages."""

    batch: str
    preset: Preset
    estimate: ChoiceEstimate

    @property
    def figures(self) -> Figures:
        """Means and counts, as training computed them."""
        return estimate_figures(self.estimate)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield each decision with its reward, value, advantage and return, in order."""
        made = self.estimate
        for item, advantages, returned in zip(
            made.episodes, made.advantages, made.returned, strict=True
        ):
            for place, ask in enumerate(item.asks):
                yield {
                    "ask": ask,
                    "problem": item.problem,
                    "rung": item.reached[place] or "stop",
                    "reward": item.rewards[place],
                    "value": item.values[place],
                    "advantage": advantages[place],
                    "return": returned[place],
                }


def replay_choices(folder: Path) -> list[ReplayedChoices]:
    """Return the batches of a run in their order, by the settings of the run.

    Raises:
        ConfigError: the settings of the run cannot be read.
        RecordError: the log is damaged.
    """
    preset = load_training(folder / "run.yaml", recorded=True).estimator()
    found = read_episodes(folder, rules_of(preset))
    return [
        ReplayedChoices(batch, preset, estimated(episodes, preset))
        for batch, episodes in found.items()
    ]
