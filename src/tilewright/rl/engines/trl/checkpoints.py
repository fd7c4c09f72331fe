"""The parts of both trainers: no model card, and checkpoints that a marker file completes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from tilewright.errors import RecordError

COMPLETE = "complete"


class PlainTrainer:
    """Mixed into a trainer of TRL, it writes no model card: the run folder has all of it."""

    _tag_names = ["tilewright"]  # noqa: RUF012 - as in TRL

    model: Any
    args: Any

    def create_model_card(self, *given: Any, **named: Any) -> None: ...  # noqa: ANN401

    def _issue_warnings_after_load(self, load_result: Any) -> None:  # noqa: ANN401
        """Refuse a checkpoint without all weights; one of two tied weights is enough."""
        own = {name for name, _ in self.model.named_parameters()}
        if absent := sorted(own.intersection(load_result.missing_keys)):
            raise RecordError(
                f"{self.args.output_dir}: a checkpoint has no weights for {absent[0]}; remove that "
                "checkpoint, so that the run resumes from the one before"
            )
        self.model.tie_weights()


class Checkpointing(TrainerCallback):  # type: ignore[misc]
    """Completes each checkpoint and removes old ones. Lifetime: one trainer.

    `best` returns the best step up to another one, whose checkpoint is never removed.
    """

    def __init__(self, keep: int, best: Callable[[int], int | None] = lambda _: None) -> None:
        self._keep, self._best = keep, best

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ANN401, ARG002
        """Complete the checkpoint of this step, then remove all but the newest and the best."""
        folder = Path(args.output_dir)
        complete(checkpoint(folder, state.global_step))
        best = self._best(state.global_step)
        whole = [path for path in _checkpoints(folder) if (path / COMPLETE).is_file()]
        for path in whole[: -self._keep]:
            if best is not None and path == checkpoint(folder, best):
                continue
            # The marker goes first: an interrupted removal leaves nothing that looks complete.
            (path / COMPLETE).unlink()
            shutil.rmtree(path)


def checkpoint(folder: Path, step: int) -> Path:
    """Return the folder of the checkpoint of a step."""
    return folder / f"checkpoint-{step}"


def complete(folder: Path) -> None:
    """Force a checkpoint to the disk, and then its marker."""
    for path in [item for item in folder.rglob("*") if item.is_file()]:
        _sync(path)
    (folder / COMPLETE).touch()
    _sync(folder / COMPLETE)
    _sync(folder)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def latest(folder: Path) -> str | None:
    """Return the path of the newest complete checkpoint; incomplete ones are removed."""
    found = None
    for path in _checkpoints(folder):
        if (path / COMPLETE).is_file():
            found = str(path)
        else:
            shutil.rmtree(path)
    return found


def _checkpoints(folder: Path) -> list[Path]:
    """Return the checkpoints in a folder, in the order of their steps."""
    found = folder.glob("checkpoint-[0-9]*")
    return sorted(found, key=lambda path: int(path.name.removeprefix("checkpoint-")))
