"""The record of an episode: what its advantages and figures follow from. No torch."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.records.events import EvalSummary
from tilewright.rl.choices.choice_batches import ChoiceEpisode
from tilewright.scoring.ladder import Rung


@dataclass(frozen=True)
class EpisodeRecord:
    """The part of an episode that its advantages follow from."""

    problem: str
    asks: tuple[str, ...]
    """Ids of the decisions."""
    rewards: tuple[float, ...]
    values: tuple[float, ...]
    """The critic's value before each decision."""
    reached: tuple[Rung | None, ...]
    """`None` after `stop`."""
    programs: tuple[EvalSummary, ...]
    """Verdicts of the programs, without one for `stop`."""
    unknown: int = 0
    """Decisions whose sentence meant no edit."""


def record_of(episode: ChoiceEpisode) -> EpisodeRecord:
    """Return the record of an episode that was just played."""
    made = [(item, item.outcome) for item in episode.decisions]
    return EpisodeRecord(
        episode.trajectory.problem,
        tuple(item.id for item, _ in made),
        tuple(outcome.reward for _, outcome in made),
        tuple(item.choice.value or 0.0 for item, _ in made),
        tuple(outcome.reached for _, outcome in made),
        tuple(outcome.program.verdict for _, outcome in made if outcome.program is not None),
        sum(outcome.is_unknown for _, outcome in made),
    )
