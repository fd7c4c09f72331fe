"""The folder of a training run, read without torch."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
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


@contextmanager
def replaced_folder(folder: Path) -> Iterator[Path]:
    """Yield the path of a new folder, which takes the place of an old one when it is written.

    An error in the block leaves the old folder as it was.
    """
    fresh, old = (folder.with_name(f"{folder.name}.{word}") for word in ("new", "old"))
    shutil.rmtree(fresh, ignore_errors=True)
    yield fresh
    # No call of the system exchanges two folders everywhere, so a kill here can leave none of that
    # name; both are whole then.
    shutil.rmtree(old, ignore_errors=True)
    if folder.exists():
        folder.replace(old)
    fresh.replace(folder)
    shutil.rmtree(old, ignore_errors=True)
