"""The steps of a training, from its event log: what its curves show."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tilewright.records.events import Event, Stepped

SCORED = "score"
"""Beginning of the batch of a held-out score."""


class TrainingSteps:
    """The figures of each step. A resumed training replaces those of the steps that it repeats."""

    def __init__(self) -> None:
        self._figures: dict[tuple[int, str], dict[str, float]] = {}

    def add(self, event: Stepped) -> None:
        """Keep the figures of a step, or of a held-out score."""
        kind = "held out" if event.batch.startswith(SCORED) else "training"
        known = {name: value for name, value in event.figures.items() if value is not None}
        self._figures[event.step, kind] = known

    def rows(self) -> list[dict[str, Any]]:
        """Return the steps in order, with their kinds and figures."""
        return [
            {"kind": kind, "step": step, "figures": figures}
            for (step, kind), figures in sorted(self._figures.items(), key=lambda item: item[0])
        ]


def steps_of(events: Iterable[Event]) -> list[dict[str, Any]]:
    """Return the steps of a training in order; none for a run that trains nothing."""
    steps = TrainingSteps()
    for event in events:
        if isinstance(event, Stepped):
            steps.add(event)
    return steps.rows()
