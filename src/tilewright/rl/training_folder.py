"""The folder of a training run, read without torch."""

from __future__ import annotations

from pathlib import Path

from tilewright.records.event_log import EVENTS, read_events
from tilewright.records.events import Stepped

ROLLOUTS = "rollouts"
"""Folder of the sampled tokens in a run folder."""
CONTEXTS = "contexts.jsonl"
"""File of the stored contexts of its prompts, if it has any."""


def was_begun(folder: Path) -> bool:
    """Tell whether the log of a run has its first event; a kill may come before."""
    if not (folder / EVENTS).exists():
        return False
    return next(read_events(folder, left_out=lambda _: None), None) is not None


def has_samples(folder: Path) -> bool:
    """Tell whether a run has sampled a reply or trained a step, which resuming it would use."""
    if any((folder / ROLLOUTS).glob("*.safetensors")):
        return True
    return (folder / EVENTS).exists() and any(
        isinstance(event, Stepped) for event in read_events(folder, left_out=lambda _: None)
    )
